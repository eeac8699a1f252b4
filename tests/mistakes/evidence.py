"""Mistakes in lesson 16."""

MISTAKES = {
    "16.1": [
        "from scipy import stats\ndef luckiest(n):\n    return stats.norm.ppf(1 - 1 / (n + 1))",  # a quantile, not a mean
        "def luckiest(n):\n    return np.random.default_rng(0).standard_normal((50_000, n)).mean(1).mean()",
        "def luckiest(n):\n    return abs(np.random.default_rng(0).standard_normal((50_000, n))).max(1).mean()",
    ],
    "16.2": [
        # sizes forgotten
        """
def effective(n, acc):
    share = (1 - acc) / max((1 - acc).sum(), 1e-12)
    return 1 / (share**2).sum() if share.sum() else 0
""",
        "def effective(n, acc):\n    return ((1 - acc) > 0).sum()",
        "def effective(n, acc):\n    w = n * (1 - acc)\n    w = w / w.sum()\n    return 1 / (w**2).sum()",
    ],
    "16.3": [
        'answer = ["trained", "last epoch", "received", "no reward"]',
        'answer = ["no reward", "received", "last epoch", "trained"]',
        'answer = ["received", "no reward", "trained", "last epoch"]',
        'answer = "received"',
    ],
    "16.4": [
        "answer = {'A', 'B', 'C', 'D'}",
        "answer = {'B', 'C', 'D', 'E'}",
        "answer = {'B', 'C', 'D', 'F'}",
        "answer = {'B', 'C'}",
        "answer = {'C', 'D'}",
    ],
}

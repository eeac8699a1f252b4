"""Mistakes in lesson 16."""

RANKS = "def mean_ranks(table):\n    return {value}"
CRITICAL = "def critical_difference(k, n):\n    return stats.studentized_range.ppf(0.95, k, np.inf) * {rest}"

MISTAKES = {
    "16.1": [
        "def luckiest(n):\n    return stats.norm.ppf(1 - 1 / (n + 1))",  # a quantile, not a mean
        "def luckiest(n):\n    return np.random.default_rng(0).standard_normal((50_000, n)).mean(1).mean()",
        "def luckiest(n):\n    return abs(np.random.default_rng(0).standard_normal((50_000, n))).max(1).mean()",
    ],
    "16.2": [
        RANKS.format(value="stats.rankdata(table, axis=1).mean(axis=0)"),  # 1 for the worst
        RANKS.format(value="(1 + np.argsort(np.argsort(-table, axis=1), axis=1)).mean(axis=0)"),  # ties do not share
        RANKS.format(value="stats.rankdata(-table.mean(axis=0))"),  # ranks of means
    ],
    "16.3": [
        CRITICAL.format(rest="np.sqrt(k * (k + 1) / (6 * n))"),  # without the root of 2
        CRITICAL.format(rest="np.sqrt(k * (k - 1) / (12 * n))"),
    ],
    "16.4": [
        "answer = {'A', 'B', 'C', 'E'}",
        "answer = {'A', 'C', 'D', 'E'}",
        "answer = {'A', 'C', 'E', 'F'}",
        "answer = {'A', 'E'}",
        "answer = {'A', 'C'}",
    ],
}

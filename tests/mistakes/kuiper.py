"""Mistakes in the lesson on KUIPER."""

MISTAKES = {
    "05.1": [
        # each starts again at its own report, as in FedBuff
        """
import heapq
def bursts(durations, K, count):
    heap = [(d, i) for i, d in enumerate(durations)]
    heapq.heapify(heap)
    waiting, made = [], []
    while len(made) < count:
        now, client = heapq.heappop(heap)
        waiting.append(client)
        heapq.heappush(heap, (now + durations[client], client))
        if len(waiting) == K:
            made.append((now, waiting))
            waiting = []
    return made
""",
        # all clients start again, not the burst's members alone
        """
def bursts(durations, K, count):
    order = sorted(range(len(durations)), key=lambda i: durations[i])[:K]
    return [((n + 1) * max(durations[i] for i in order), order) for n in range(count)]
""",
        "def bursts(durations, K, count):\n    return [4.5]",
    ],
    "05.2": [
        # Equation 2 as printed
        """
def burst(x, models, n, acc, staleness):
    c = n / n.sum() * (1 - acc)
    rate = 0.7 * (1 + staleness.mean()) ** -0.5
    return (1 - rate) * x + rate * c @ models
""",
        # the mean of the penalties
        """
def burst(x, models, n, acc, staleness):
    c = n * (1 - acc)
    if c.sum() == 0:
        return x
    rate = 0.7 * ((1 + staleness) ** -0.5).mean()
    return (1 - rate) * x + rate * (c / c.sum()) @ models
""",
        # a burst without weights is 0/0
        """
def burst(x, models, n, acc, staleness):
    c = n * (1 - acc)
    rate = 0.7 * (1 + staleness.mean()) ** -0.5
    return (1 - rate) * x + rate * (c / c.sum()) @ models
""",
    ],
    "05.3": [
        "def left(accuracy, versions):\n    return 1 - 0.7 * accuracy * versions",
        "def left(accuracy, versions):\n    return (1 - 0.7 * (1 - accuracy)) ** versions",
    ],
    "05.4": [
        # sizes forgotten
        """
def effective(n, acc):
    share = (1 - acc) / max((1 - acc).sum(), 1e-12)
    return 1 / (share**2).sum() if share.sum() else 0
""",
        "def effective(n, acc):\n    return ((1 - acc) > 0).sum()",
        "def effective(n, acc):\n    w = n * (1 - acc)\n    w = w / w.sum()\n    return 1 / (w**2).sum()",
    ],
    "05.5": [
        'answer = ["trained", "last epoch", "received", "no reward"]',
        'answer = ["no reward", "received", "last epoch", "trained"]',
        'answer = ["received", "no reward", "trained", "last epoch"]',
        'answer = "received"',
    ],
    "05.6": [
        # the pull the wrong way round
        "def moves(x, starts, deltas, shares, rate):\n    return rate * shares @ deltas, rate * shares @ (x - starts)",
        # without the rate
        "def moves(x, starts, deltas, shares, rate):\n    return shares @ deltas, shares @ (starts - x)",
        "def moves(x, starts, deltas, shares, rate):\n    return rate * shares @ deltas",
    ],
    "05.7": [
        "answer = (100, 0.07, 2)",
        "answer = (99, 0.7 * 99 ** -0.5 * 0.7, 2)",
        "answer = (99, 0.07, 0.2)",
        "answer = 99",
    ],
}

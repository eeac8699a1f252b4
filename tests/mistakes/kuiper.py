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
        # the pull the wrong way round
        "def moves(x, starts, deltas, shares, rate):\n    return rate * shares @ deltas, rate * shares @ (x - starts)",
        # without the rate
        "def moves(x, starts, deltas, shares, rate):\n    return shares @ deltas, shares @ (starts - x)",
        "def moves(x, starts, deltas, shares, rate):\n    return rate * shares @ deltas",
    ],
}

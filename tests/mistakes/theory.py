"""Mistakes in lesson 14."""

BOUND = """
def staleness_bound(g, delays, eta, L):
    size = {size}
    sums = torch.stack([size[{window}].sum() for t, late in enumerate(delays)])
    return {factor} * sums
"""
RIGHT = {"size": "g.square().sum(1)", "window": "t - late : t", "factor": "L**2 * eta**2 * max(delays)"}
BUFFER = """
def mean_square(updates, M):
    return {value}
"""

MISTAKES = {
    "14.1": [
        BOUND.format(**RIGHT | {"window": "t - late : t + 1"}),  # with the present step
        BOUND.format(**RIGHT | {"size": "g.norm(dim=1)"}),
        BOUND.format(**RIGHT | {"factor": "L * eta**2 * max(delays)"}),  # KUIPER's Assumption 4
        BOUND.format(**RIGHT | {"factor": "L**2 * eta**2 * max(delays) ** 2"}),
    ],
    "14.2": [
        "def largest_step(tau, L):\n    return 1 / (2 * L * (1 + tau))",  # the theorem's
        "def largest_step(tau, L):\n    return 2 / (L * (1 + tau))",
        "def largest_step(tau, L):\n    return 2 * np.sin(np.pi / (2 * (2 * tau + 1)))",  # L = 1
    ],
    "14.3": [
        "def settles(durations, centres):\n    return np.mean(centres)",
        "def settles(durations, centres):\n    return np.average(centres, weights=durations)",
    ],
}

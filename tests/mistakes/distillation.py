"""Mistakes in lesson 06."""

MISTAKES = {
    "06.1": [
        "def pull(z, v, T):\n    return (z / T).softmax(-1) - (v / T).softmax(-1)",  # no chain rule
        "def pull(z, v, T):\n    return ((v / T).softmax(-1) - (z / T).softmax(-1)) / T",  # the wrong way round
        "def pull(z, v, T):\n    return (z.softmax(-1) - v.softmax(-1)) / T",
    ],
    "06.2": ["answer = 3", "answer = 1 / 9", "answer = 27"],
    "06.3": ["def overrules(n):\n    return 2.0", "def overrules(n):\n    return 2.0 * (n + 1)"],
    "06.4": ["answer = (60, 90)", "answer = (0, 30)", "answer = (0, 0.9)", "answer = 50"],
}

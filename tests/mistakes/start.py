"""What students get wrong in lesson 00."""

MISTAKES = {
    "00.1": ["answer = (121, 30)", "answer = (120, 29)", "answer = 121", "answer = (5, 1)"],
    "00.2": [
        "answer = [0, 0, 1, 0, 1, 0, 3, 0, 2]",  # who fills the buffer gets the new version
        "answer = [0, 0, 0, 0, 2, 1, 3, 1, 2]",  # a tie at time 2: both are taken as fresh
        "answer = [0, 0, 1]",
    ],
    "00.3": [
        "def fedbuff_step(x, deltas, staleness, server_lr):\n    return x + server_lr * deltas.mean(0)",
        "def fedbuff_step(x, deltas, staleness, server_lr):\n"
        "    weights = (1 + staleness) ** -0.5\n"
        "    return x + server_lr * weights @ deltas / weights.sum()",
        "def fedbuff_step(x, deltas, staleness, server_lr):\n"
        "    return x + server_lr * ((1 + staleness) ** -0.5) @ deltas",
        "def fedbuff_step(x, deltas, staleness, server_lr):\n"
        "    return x + server_lr * (deltas * (1 + staleness) ** -0.5).mean(0)",
    ],
    "00.4": ['answer = ("fedavg", "fedavg")', 'answer = ("fedbuff", "fedbuff")', 'answer = "fedbuff"'],
    "00.5": [
        "def mean_staleness(in_flight, buffer_size, convention):\n    return in_flight / buffer_size",
        "def mean_staleness(in_flight, buffer_size, convention):\n    return buffer_size / in_flight",
    ],
}

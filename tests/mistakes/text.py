"""Mistakes in the exercises of lesson 11."""

MISTAKES = {
    "11.1": [
        "def constant_scores(labels):\n    return labels.float().mean(), 0.5",  # the share of class 1
        "def constant_scores(labels):\n"  # every class up to the largest
        "    counts = labels.bincount()\n    return counts.max() / counts.sum(), 1 / len(counts)",
        "def constant_scores(labels):\n"  # the number of classes taken for two
        "    return labels.bincount().max() / len(labels), 0.5",
    ],
    "11.3": [
        "def attend(scores, values, here):\n    return (scores * here).softmax(-1) @ values",  # e⁰ is not 0
        "def attend(scores, values, here):\n    return (scores.softmax(-1) * here) @ values",  # no longer a mean
        "def attend(scores, values, here):\n    w = scores.exp() * here\n    return w @ values / w.sum()",  # overflows
    ],
    "11.4": [
        "def by_users(deltas):\n    return deltas.mean(0)",
        "def by_users(deltas):\n    return deltas.sum(0) / (deltas != 0).any(-1).sum(0)[:, None]",  # 0/0
        "def by_users(deltas):\n    return deltas.sum(0) / (deltas != 0).sum(0).clamp(min=1)",  # numbers, not rows
    ],
    "11.2": [
        "def possible(printed, pairs, runs):\n    return (printed / 100 * pairs * runs).is_integer()",
        "def possible(printed, pairs, runs):\n"  # a mean of n runs, but counted as one
        "    return round(100 * round(printed / 100 * pairs) / pairs, 2) == printed",
    ],
}

"""Mistakes in the exercises of lesson 12."""

MISTAKES = {
    "12.3": [
        "def counted(rows):\n    return ((rows == 1).cumsum(-1) > 0) & (rows != 0)",  # the end predicts nothing
        "def counted(rows):\n"  # off by one: the places of the answer, not those where it is predicted
        "    asked = (rows == 1).cumsum(-1) > 0\n"
        "    return asked & (rows != 1) & (rows != 0)",
        "def counted(rows):\n"  # an end in the question stops the answer
        "    return ((rows == 1).cumsum(-1) > 0) & ((rows == 2).cumsum(-1) == 0)",
    ],
    "12.4": [
        "def two_scores(said, labels):\n"  # a mean over tokens
        "    asked = labels != -100\n"
        "    hits = (said == labels) & asked\n"
        "    return hits.sum() / asked.sum(), (hits == asked).all(1).float().mean()",
        "def two_scores(said, labels):\n"  # -100 counts as wrong
        "    hits = said == labels\n"
        "    return hits.float().mean(), hits.all(1).float().mean()",
    ],
    "12.1": [
        "def problems_needed(lead, differ):\n    return differ / lead**2",  # one error
        "def problems_needed(lead, differ):\n    return 4 * 2 * 0.25 / lead**2",  # as if the problems were others
    ],
    "12.2": ["answer = 20", "answer = 10"],
}

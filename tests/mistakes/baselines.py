"""Plausible mistakes in lesson 03."""

MISTAKES = {
    "03.1": [
        "def hinge(tau, a, b):\n    return 1.0 if tau <= b else 1 / (a * (tau - b))",
        "def hinge(tau, a, b):\n    return 1.0 if tau < b else 1 / (a * tau + 1)",
        "def hinge(tau, a, b):\n    return 1.0 if tau <= b else 1 / (a * tau + 1)",
    ],
    "03.2": [
        "def direction(cache, entries):\n    new = cache.clone()\n    for client, delta in entries:\n"
        "        new[client] = delta\n    return new.mean(0), new",
        "def direction(cache, entries):\n"
        "    v = cache.mean(0) + torch.stack([delta - cache[client] for client, delta in entries]).mean(0)\n"
        "    for client, delta in entries:\n        cache[client] = delta\n    return v, cache",
        "def direction(cache, entries):\n    new = cache.clone()\n    for client, delta in entries:\n"
        "        new[client] = delta\n"
        "    return new.mean(0) + torch.stack([d - cache[c] for c, d in entries]).mean(0), new",
    ],
    "03.3": [
        "def rests_at(k, fast, slow):\n    return (k - 1) / (k + 1)",
        "def rests_at(k, fast, slow):\n    return (k * fast - slow) / (k + 1)",
    ],
}

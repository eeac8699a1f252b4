"""What students get wrong in lesson 02."""

MISTAKES = {
    "02.1": [
        "def largest_share(alpha, classes):\n"  # not divided by the mean of the sum
        "    return quad(lambda x: 1 - gammainc(alpha, x) ** classes, 0, np.inf, limit=400)[0]",
        "def largest_share(alpha, classes):\n"
        "    return quad(lambda x: 1 - gammainc(alpha, x) ** classes, 0, np.inf, limit=400)[0] / classes",
    ],
    "02.2": [
        "def tv(counts):\n    p = counts / counts.sum(1, keepdims=True)\n"
        "    return 0.5 * np.abs(p - p.mean(0)).sum(1).mean()",  # the mean of shares in place of the share of all
        "def tv(counts):\n    p, q = counts / counts.sum(1, keepdims=True), counts.sum(0) / counts.sum()\n"
        "    return np.abs(p - q).sum(1).mean()",
        "def tv(counts):\n    p = counts / counts.sum(1, keepdims=True)\n"
        "    return 0.5 * np.abs(p - 1 / counts.shape[1]).sum(1).mean()",
    ],
    "02.3": [
        "def shards(labels, clients, rng):\n"  # labels in place of numbers
        "    pieces = np.array_split(np.sort(labels), 2 * clients)\n"
        "    order = rng.permutation(2 * clients).reshape(-1, 2)\n"
        "    return [np.concatenate([pieces[a], pieces[b]]) for a, b in order]",
        "def shards(labels, clients, rng):\n    return np.array_split(rng.permutation(len(labels)), clients)",
        'def shards(labels, clients, rng):\n    return np.array_split(np.argsort(labels, kind="stable"), clients)',
    ],
    "02.4": ['answer = ("better", "better")', 'answer = ("worse", "worse")'],
    "02.5": ['answer = "labels"'],
}

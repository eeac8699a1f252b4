"""Plausible mistakes in lesson 04."""

MISTAKES = {
    "04.1": [
        "def my_swing(accuracy, last):\n    return np.diff(accuracy[-last:]).mean()",
        "def my_swing(accuracy, last):\n    return np.abs(np.diff(accuracy)).mean()",
        "def my_swing(accuracy, last):\n    return np.abs(np.diff(accuracy)[-last:]).mean()",
        "def my_swing(accuracy, last):\n    return np.std(accuracy[-last:])",
        "def my_swing(accuracy, last):\n    tests = accuracy[-last:]\n    return np.abs(np.diff(tests)).sum() / len(tests)",
    ],
    "04.2": [
        "def at_rest(eta, share, sigma, buffer_size):\n    return (eta / (2 - eta) / buffer_size) ** 0.5 * sigma",
        "def at_rest(eta, share, sigma, buffer_size):\n    a = eta * share\n    return a / (2 - a) * sigma**2 / buffer_size",
        "def at_rest(eta, share, sigma, buffer_size):\n    a = eta * share\n    return (a / (2 - a)) ** 0.5 * sigma",
    ],
    "04.3": [
        "def late(a, tau, versions):\n    path = [1.0] * (tau + 1)\n"
        "    for _ in range(versions):\n        path.append(path[-1] - a * path[-1 - tau])\n    return path",
        "def late(a, tau, versions):\n    path = [1.0]\n"
        "    for t in range(versions):\n        path.append(path[-1] - a * path[max(0, t - tau - 1)])\n    return path",
        "def late(a, tau, versions):\n    return [(1 - a) ** t for t in range(versions + 1)]",
    ],
    "04.4": [
        "lowest_first = ['as it is', 'nobody late', 'clients alike', 'alike, nobody late']",
        "lowest_first = ['as it is', 'clients alike', 'nobody late', 'alike, nobody late']",
        "lowest_first = ['clients alike', 'as it is', 'alike, nobody late', 'nobody late']",
        "lowest_first = ['as it is', 'clients alike']",
    ],
    "04.5": [
        "def lead(table, method, baseline, server_lr=None):\n"
        "    rows = table if server_lr is None else table[table['server_lr'] == server_lr]\n"
        "    best = rows.groupby('method')['accuracy'].max()\n    return best[method] - best[baseline]",
        "def lead(table, method, baseline, server_lr=None):\n"
        "    means = table.groupby(['method', 'client_lr', 'server_lr'])['accuracy'].mean()\n"
        "    best = means.groupby('method').max()\n    return best[method] - best[baseline]",
        "def lead(table, method, baseline, server_lr=None):\n"
        "    rows = table if server_lr is None else table[table['server_lr'] == server_lr]\n"
        "    means = rows.groupby(['method', 'client_lr', 'server_lr'])['accuracy'].mean()\n"
        "    best = means.groupby('method').max()\n    return best[baseline] - best[method]",
        "def lead(table, method, baseline, server_lr=None):\n"
        "    means = table.groupby(['method', 'client_lr', 'server_lr'])['accuracy'].mean().reset_index()\n"
        "    own, other = (means[means['method'] == name] for name in (method, baseline))\n"
        "    other = other if server_lr is None else other[other['server_lr'] == server_lr]\n"
        "    return own['accuracy'].max() - other['accuracy'].max()",
    ],
}

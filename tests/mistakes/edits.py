"""Lessons 00 to 17, beside the mistakes that the course knows: the lesson's solution with something replaced."""

EMPTY = "    if weight.sum() == 0:\n        return {}\n"
EQUAL = '    if equal:\n        return "equivalent"\n'
LEAD = "def lead(table, method, baseline, server_lr=None):\n"
FILLED = "    zoo.fill(server, 1.0)\n    before"
MOVED = "torch.allclose(server.x - before, torch.full_like(before, {}))"
ONE = "    if not zoo.send(server, 1.0):\n        server.flush()\n"
REPORTED = "        arrivals.append((now, client, version - start))\n"

MISTAKES = {
    "00.1": ["answer = (121, 30)", "answer = (120, 29)", "answer = 121", "answer = (5, 1)"],
    "00.2": [
        "answer = [0, 0, 1, 0, 1, 0, 3, 0, 2]",  # who fills the buffer gets the new version
        "answer = [0, 0, 0, 0, 2, 1, 3, 1, 2]",  # a tie at time 2: both are taken as fresh
        "answer = [0, 0, 1]",
    ],
    "00.4": ['answer = ("fedavg", "fedavg")', 'answer = ("fedbuff", "fedbuff")', 'answer = "fedbuff"'],
    "00.5": [("ageing / buffer_size", "in_flight / buffer_size"), ("ageing / buffer_size", "buffer_size / in_flight")],
    "01.1": [
        ('policy == "after_agg"', "True"),
        ('policy == "after_agg"', "True", "version - start))", "version))", "len(durations) + reports - 1", "client"),
        (REPORTED, "", "reports // buffer_size\n", f"reports // buffer_size\n{REPORTED}"),  # counts itself
    ],
    "01.2": ["answer = (5, 100, 2, 0)", "answer = (5, 99, 3, 0)", "answer = (5, 99, 2, 1)"],
    "01.3": [("return rate /", "return rate * durations /")],
    "01.4": ['answer = ("faster", "faster")', 'answer = ("fewer", "faster")', 'answer = ("faster", "fewer")'],
    "02.1": [(" / (classes * alpha)", " / classes")],
    "02.3": [
        ('np.argsort(labels, kind="stable")', "np.sort(labels)"),  # labels in place of numbers
        "def shards(labels, clients, rng):\n    return np.array_split(rng.permutation(len(labels)), clients)",
        'def shards(labels, clients, rng):\n    return np.array_split(np.argsort(labels, kind="stable"), clients)',
    ],
    "02.4": ['answer = ("better", "better")', 'answer = ("worse", "worse")'],
    "02.5": ['answer = "labels"'],
    "03.2": [
        ("cache.mean(0) + corrections.mean(0), new", "new.mean(0), new"),
        ("new = cache.clone()", "v, new = cache.mean(0) + corrections.mean(0), cache",
         "return cache.mean(0) + corrections.mean(0), new", "return v, new"),
        ("return cache.mean(0)", "return new.mean(0)"),
    ],
    "04.3": [("[1.0]", "[1.0] * (tau + 1)", "[max(0, t - tau)]", "[-1 - tau]")],
    "04.4": [
        "lowest_first = ['as it is', 'nobody late', 'clients alike', 'alike, nobody late']",
        "lowest_first = ['as it is', 'clients alike', 'nobody late', 'alike, nobody late']",
        "lowest_first = ['clients alike', 'as it is', 'alike, nobody late', 'nobody late']",
        "lowest_first = ['as it is', 'clients alike']",
    ],
    "04.5": [
        ('rows.groupby(["method", "client_lr", "server_lr"])["accuracy"].mean()', 'rows[["method", "accuracy"]]',
         "max()", 'max()["accuracy"]'),
        ('table if server_lr is None else table[table["server_lr"] == server_lr]', "table"),
        ("best[method] - best[baseline]", "best[baseline] - best[method]"),
        LEAD + "    means = table.groupby(['method', 'client_lr', 'server_lr'])['accuracy'].mean().reset_index()\n"
        "    own, other = (means[means['method'] == name] for name in (method, baseline))\n"
        "    other = other if server_lr is None else other[other['server_lr'] == server_lr]\n"
        "    return own['accuracy'].max() - other['accuracy'].max()",
    ],
    "05.1": [
        # each starts again at its own report, as in FedBuff
        ("append(client)\n", "append(client)\n        heapq.heappush(heap, (now + durations[client], client))\n",
         "            for member in waiting:\n                heapq.heappush(heap, (now + durations[member], member))\n", ""),
        "def bursts(durations, K, count):\n"  # all clients start again, not the burst's members alone
        "    order = sorted(range(len(durations)), key=lambda i: durations[i])[:K]\n"
        "    return [((n + 1) * max(durations[i] for i in order), order) for n in range(count)]",
        "def bursts(durations, K, count):\n    return [4.5]",
    ],
    "05.2": [(EMPTY.format("x"), "")],  # a burst without weights is 0/0
    "05.3": [
        ("starts - x", "x - starts"),  # the pull the wrong way round
        ("rate * ", ""),
        ("(shares @ deltas), rate * (shares @ (starts - x))", "(shares @ deltas)"),
    ],
    "06.2": ["answer = 3", "answer = 1 / 9", "answer = 27"],
    "06.4": ["answer = (60, 90)", "answer = (0, 30)", "answer = (0, 0.9)", "answer = 50"],
    "07.1": [
        ("1 / len(heard) for client in heard", "reports.count(client) / len(reports) for client in reports"),
        ("set(reports)", "set(reports[-5:])"),
    ],
    "07.2": [("torch.xlogy(p, p)", "(p * p.log())")],  # 0 log 0
    "08.1": [
        (".drop(index=ours)", ""),  # its own rows as rivals
        ("max()", "mean()"),
        ("table.loc[ours]", "table.loc[ours].max()"),
        ("table.drop(index=ours).max()", "table.iloc[0]"),  # FedBuff, the weakest
    ],
    "08.2": [
        ("exact and any(so_far & stragglers for so_far in heard)", "not any(here & stragglers for here in stored)"),
        ("exact and any(so_far & stragglers for so_far in heard)", "exact"),
    ],
    "08.3": ['answer = "plain"', 'answer = "neither"', 'answer = "natural"'],
    "09.1": [
        "answer = (200, 201 ** -0.5)",  # forgets that clients leave in lots
        "answer = (248.5, 1 / 249.5)",  # forgets the root
        "answer = 248.5",
    ],
    "09.3": [(".log_softmax(-1)", ".softmax(-1).log()")],
    "09.4": [
        ("rate * (1 - weight)", "rate"),  # labels at full force
        ('"alpha_max": 0.0', '"alpha_max": weight', "rate * (1 - weight)", "rate"),  # the ramp is left
        ("(1 - weight)", "weight"),
        ('"alpha_min": 0.0, "alpha_max": 0.0', '"alpha": 0'),
    ],
    "10.2": ["answer = ('down', 'down')", "answer = ('same', 'same')", "answer = 'same'"],
    "11.3": ["def attend(scores, values, here):\n    w = scores.exp() * here\n    return w @ values / w.sum()"],  # overflows
    "12.2": ["answer = 20", "answer = 10"],
    "13.2": ["answer = [[1, 0], [0, 1]]", "answer = [[1, 1], [1, 1]]", "answer = [[1, 0], [1, 0]]"],
    "13.3": ["answer = 7.6", "answer = -62", "answer = 'more'"],
    "13.5": ["answer = 'teacher, assistant'", "answer = 'pretrained'"],
    "15.3": [("points / deviation", "points"), (">= 0.8", "> 0.9"), ("range(2", "range(10")],
    "15.4": [
        (EQUAL, "", "    if high < 0", '    if low <= 0 <= high:\n        return "equivalent"\n    if high < 0',
         '"fails" if high < margin else "open"', '"open"'),
        ("low > margin", "low > 0"),
        (EQUAL, "", '    return "fails"', f'{EQUAL.replace("equal:", "equal and low <= 0:")}    return "fails"'),
        ("high < margin", "0 < low and high < margin"),
    ],
    "16.1": [("max(1)", "mean(1)")],
    "16.2": [(EMPTY.format("0.0"), "")],
    "16.3": [
        'answer = ["trained", "last epoch", "received", "no reward"]',
        'answer = ["no reward", "received", "last epoch", "trained"]',
        'answer = ["received", "no reward", "trained", "last epoch"]',
        'answer = "received"',
    ],
    "16.4": ["answer = {'A', 'B', 'C', 'D'}", "answer = {'B', 'C', 'D', 'E'}", "answer = {'B', 'C', 'D', 'F'}",
             "answer = {'B', 'C'}", "answer = {'C', 'D'}"],
    "17.1": [
        'first = {"A": "leftover", "B": "rate", "C": "short"}',
        'first = {"A": "mean", "B": ..., "C": ...}',
        'first = {"A": "sum", "B": ..., "C": ...}',  # no suspect
        'first = {"A": "leftover"}',
    ],
    "17.2": [
        (FILLED, "    before", "0.0", "1.0", "torch.allclose(server.x, before)", MOVED.format("server.server_lr")),  # one: blind
        (f"{FILLED} = server.x\n", "    before = server.x\n    zoo.fill(server, 1.0)\n", "torch.allclose(server.x, before)",
         MOVED.format(0.5)),  # one rate: false alarm
        ("torch.allclose(server.x, before)", "bool(server.x.isfinite().all())"),
        ("torch.allclose(server.x, before)", "server.filled == 0"),  # the counter is emptied
        ("return torch.allclose(server.x, before)", "before[7]"),
    ],
    "17.3": [
        ("server.server_lr", "0.5"),
        (ONE, "    zoo.fill(server, 1.0)\n"),  # a full round: blind
        (ONE, "    zoo.send(server, 1.0)\n", "server.server_lr", "0.0"),  # has not closed
    ],
    "17.4": [
        'second = {"D": "exponent", "E": "base", "F": "moment"}',
        'second = {"D": "sides", "E": "delta", "F": "moment"}',
    ],
    "17.5": [
        ("staleness=server.version", "staleness=0", "first + 5.0", "server.x + 5.0"),  # before or after?
        ("server.settings.queue_length + 1", "0", "staleness=server.version", "staleness=0"),  # fresh: blind
    ],
    "17.6": [
        'third = {"G": "order", "H": "renewal", "I": "maximum"}',
        'third = {"G": "client", "H": "whose", "I": "maximum"}',
    ],
    "17.7": [
        (FILLED, "    before", "0.0", "1.0"),  # rises in both
        # falls in both, but not below zero
        (FILLED, "    before", "largest_square", "square", "    for", "    zoo.fill(server, 1.0)\n    for"),
        (FILLED, "    before", "largest_square", "mean", "    for", "    zoo.fill(server, -1.0)\n    for"),
    ],
    "17.8": [
        'fourth = {"J": "sign", "K": "random", "L": "saved"}',
        'fourth = {"J": "own", "K": "order", "L": "saved"}',
    ],
    "17.9": [
        ("first = server.x", "first = server.version", "torch.equal(server.x, first)", "server.version == first"),
        ("(saved)\n    zoo.fill(server, 2.0)", "(saved)", "torch.equal(server.x, first)", "torch.equal(server.x, saved['x'])"),
        ("(saved)\n    zoo.fill(server, 2.0)", "(saved)\n    zoo.fill(server, 1.0)"),
    ],
    "17.10": [
        "def stands(server):\n    return True\n\n\nmine = {'B': stands, 'D': stands, 'G': stands}",
        'mine = {"A": lambda server: True}',
        "mine = [len, len, len]",
        ('"D": share, "H": everybody', ""),  # one of three
    ],
}  # fmt: skip

"""Mistakes in lesson 17."""

FORGETS = """
def forgets(server):
    before = server.x
    zoo.fill(server, 1.0)
    {rest}
"""
SHORT = """
def short_round(server):
    before = server.x
    {rest}
    return torch.allclose(server.x - before, torch.full_like(before, {moved}))
"""
ALONE = "if not zoo.send(server, 1.0):\n        server.flush()"
TRAINED = """
def as_trained(server):
    first = server.x
    for _ in range({versions}):
        zoo.send(server, 1.0)
    zoo.send(server, 5.0, staleness={staleness})
    return torch.allclose(server.entries[-1], {model} + 5.0)
"""
FALLS = """
def never_falls(server):
    before = server.{name}
    for delta in {deltas}:
        zoo.fill(server, delta)
    return bool((server.{name} >= before).all())
"""
BACK = """
def goes_back(server):
    zoo.fill(server, 1.0)
    saved = server.state()
    zoo.fill(server, 2.0)
    first = server.{name}
    server.restore(saved)
    {again}
    return {same}
"""
MOVED = "torch.allclose(server.x - before, torch.full_like(before, {}))"

MISTAKES = {
    "17.1": [
        'first = {"A": "leftover", "B": "rate", "C": "short"}',
        'first = {"A": "mean", "B": ..., "C": ...}',
        'first = {"A": "sum", "B": ..., "C": ...}',  # no suspect
        'first = {"A": "leftover"}',
    ],
    "17.2": [
        FORGETS.format(rest=f"return {MOVED.format('server.server_lr')}"),  # one buffer: blind
        FORGETS.format(rest=f"zoo.fill(server, 0.0)\n    return {MOVED.format(0.5)}"),  # one rate: false alarm
        FORGETS.format(rest="zoo.fill(server, 1.0)\n    return bool(server.x.isfinite().all())"),
        FORGETS.format(rest="return server.filled == 0"),  # the counter is emptied
        FORGETS.format(rest="before[7]"),
    ],
    "17.3": [
        SHORT.format(rest=ALONE, moved=0.5),
        SHORT.format(rest="zoo.fill(server, 1.0)", moved="server.server_lr"),  # a full round: blind
        SHORT.format(rest="zoo.send(server, 1.0)", moved=0.0),  # has not closed
    ],
    "17.4": [
        'second = {"D": "exponent", "E": "base", "F": "moment"}',
        'second = {"D": "sides", "E": "delta", "F": "moment"}',
    ],
    "17.5": [
        TRAINED.format(versions="server.settings.queue_length + 1", staleness=0, model="server.x"),  # before or after?
        TRAINED.format(versions=0, staleness=0, model="first"),  # fresh: blind
    ],
    "17.6": [
        'third = {"G": "order", "H": "renewal", "I": "maximum"}',
        'third = {"G": "client", "H": "whose", "I": "maximum"}',
    ],
    "17.7": [
        FALLS.format(name="largest_square", deltas="(1.0, 1.0, 1.0)"),  # rises in both
        FALLS.format(name="square", deltas="(1.0, 0.0, 0.0)") + "    # falls in both, but not below zero",
        FALLS.format(name="mean", deltas="(-1.0, 0.0)"),
    ],
    "17.8": [
        'fourth = {"J": "sign", "K": "random", "L": "saved"}',
        'fourth = {"J": "own", "K": "order", "L": "saved"}',
    ],
    "17.9": [
        BACK.format(name="version", again="zoo.fill(server, 2.0)", same="server.version == first"),
        BACK.format(name="x", again="pass", same="torch.equal(server.x, saved['x'])"),  # only what is saved
        BACK.format(name="x", again="zoo.fill(server, 1.0)", same="torch.equal(server.x, first)"),
    ],
    "17.10": [
        "def stands(server):\n    return True\n\n\nmine = {'B': stands, 'D': stands, 'G': stands}",
        "def kept(server):\n    first, copy = server.x, server.x.clone()\n    zoo.fill(server, 1.0)\n"
        "    return torch.equal(first, copy)\n\n\nmine = {'B': kept}",  # one of three
        "mine = {'A': lambda server: True}",
        "mine = [len, len, len]",
    ],
}

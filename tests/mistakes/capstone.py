"""Mistakes in lesson 19."""

METHOD = '''
import tempfile

mine = Path(tempfile.mkdtemp()) / "fedwrong.py"
mine.write_text("""
from asyncfl_lite.algorithms import ALGORITHMS, About, FedBuff


@ALGORITHMS.register("fedwrong")
class FedWrong(FedBuff):
    "FedBuff with a mistake."

    about = About("FedWrong", paper="a mistake", models_stored="2")
    GRID = {grid}

    class Settings(FedBuff.Settings):
        "No options."

    def {code}
""")
'''
GRID = {"client_lr": [0.1], "server_lr": [0.3, 1.0]}
HALF = "entry(self, update):\n        return 0.5 * update.delta"
INVARIANTS = """
def aged(server, versions):
    for _ in range(versions):
        zoo.fill(server, 0.0)
    return server.x


def fresh(server):
    before = server.x
    zoo.fill(server, 1.0)
    return torch.allclose(server.x - before, torch.full_like(before, server.server_lr))


def late(server):
    before = aged(server, {late})
    zoo.fill(server, 1.0, staleness={late})
    return torch.equal(server.x, before)


def counted(server):
    before = server.version
    zoo.fill(server, 0.0)
    return server.version == before + 1


tests = [{tests}]
"""
REPORT = '''
def report(outcome):
    plan = outcome.plan
    return f"""### Question
{question}
### Plan
{plan}
### Result
{result}
### Control
{control}
### Limits
{limits}
"""
'''
FILLED = "word " * 60
GOOD = {
    "question": FILLED,
    "plan": "{outcome.digest[:8]}",
    "result": "{outcome.verdict} {outcome.because or outcome.interval}",
    "control": "{plan.control.cell}",
    "limits": FILLED,
}


def _swap(template: str, **parts: object) -> str:
    for name, text in parts.items():
        template = template.replace(f"{{{name}}}", str(text))
    return template


def method(code: str = HALF, grid: object = GRID) -> str:
    return _swap(METHOD, grid=grid, code=code)


def invariants(tests: str, late: str = "server.settings.patience + 1") -> str:
    return _swap(INVARIANTS, tests=tests, late=late)


def report(**changed: str) -> str:
    return _swap(REPORT, **GOOD | changed)


MISTAKES = {
    "19.1": [
        'mine = "no_such_file.py"',
        "mine = 3",
        'mine = "../examples/fedpatience.py"',  # the worked method itself
        method("entry(self, update):\n        return 1.0 * update.delta"),  # FedBuff again
        method(grid={"client_lr": [0.1], "server_lr": [1.0]}),  # one rate
        method(  # a dropped update does not count
            "on_receive(self, update):\n        return update.staleness < 1 and super().on_receive(update)"
        ),
        method(  # nor does a very stale one, which the league's short run does not have
            "on_receive(self, update):\n        return update.staleness < 9 and super().on_receive(update)"
        ),
        method("entry(self, update):\n        return update.delta.mul_(0.5)"),  # in place, against the rules
    ],
    "19.2": [
        invariants("fresh, counted, late"),  # blind for the copy that is off by one
        invariants("fresh, late, counted", late="server.settings.patience"),  # false alarm
        invariants("fresh, late, late", late="2"),
        invariants("fresh"),
        "tests = 3",
    ],
    "19.3": [
        ("claimed / 2,", "0,"),
        ("< 0.8", "< 0.5"),
        ("0.95", "0.8"),
        ("seeds = 3", "seeds = 10"),
        ("claimed, deviation, seeds", "claimed / 2 + 1, deviation, seeds"),
        "def seeds_for(claimed, deviation):\n    return 10",
    ],
    "19.4": [
        report(result="It holds. {outcome.interval}"),  # whatever came out
        report(result="{outcome.verdict}, and not the verdict open: {outcome.because or outcome.interval}"),
        report(result="{outcome.verdict} {outcome.mean:+.2f}"),  # no interval; nan where there is no verdict
        report(result="{outcome.verdict} {outcome.interval}"),  # does not say why there is none
        report(result="{outcome.verdict} {outcome.because or outcome.interval} {outcome.low}"),  # nan
        report(plan="It was sealed."),
        report(control="It was there."),
        report(question="word " * 120, limits="None."),
        report(question="Why?", limits="word " * 25),  # short
        report(question="word " * 700),  # long
        "def report(outcome):\n    return outcome.interval",
        "def report(outcome):\n    return 3",
    ],
}

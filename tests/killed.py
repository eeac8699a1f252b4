"""A run that is killed again and again: ``python tests/killed.py configuration.json folder kills seed``.

The process imports once; each try is a fork of it that goes on with the run in the folder and is killed with SIGKILL:
mostly by its parent after a random time, every fourth by itself inside the writing of a checkpoint, and every fourth
between that and giving it its name. After so many kills one try is left in peace. What happened is printed as JSON:
``{"killed": …, "started_over": …, "cut_off": …, "unnamed": …}``, the last two of those kinds.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

from asyncfl_lite import Config
from asyncfl_lite.runs import store
from asyncfl_lite.runs.results import load_complete
from asyncfl_lite.runs.run import run_in

EMPTY = hashlib.sha256().digest()


def die() -> None:
    """What SIGKILL does to a process, from inside it."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_inside_a_write(kind: str, saves: int, share: float) -> None:
    """Have this process killed in its save number ``saves``: ``cut_off`` after a share of the bytes, or ``unnamed``."""
    write, replace, count = store._Hashed.write, Path.replace, {"begun": 0, "written": 0}

    def counted(self: store._Hashed, data: bytes) -> int:
        count["begun"] += self.sha256.digest() == EMPTY
        if kind == "cut_off" and count["begun"] >= saves:
            self.file.write(data[: int(share * len(data))])
            self.file.flush()
            die()
        return write(self, data)

    def named(self: Path, target: Path) -> Path:
        if kind == "unnamed" and ".part" in self.name and "checkpoint" in self.name:
            count["written"] += 1
            if count["written"] >= saves:
                die()
        return replace(self, target)

    store._Hashed.write, Path.replace = counted, named


def attempt(folder: Path, config: Config, after: float, how: tuple[str, int, float] | None = None) -> bool:
    """Go on with the run in a process of its own; return whether it was killed, ``after`` seconds from its start."""
    child = os.fork()
    if child == 0:
        if how is not None:
            die_inside_a_write(*how)
        warnings.simplefilter("error")  # a checkpoint that cannot be used would be told by a warning
        try:
            run_in(folder, config)
        except Warning as told:
            (folder / "warned").write_text(str(told))
            os._exit(3)
        os._exit(0)
    deadline = time.monotonic() + after
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL), "the run failed"
            return os.WIFSIGNALED(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def main(configuration: str, folder: str, kills: str, seed: str) -> None:
    """Kill and go on until there were enough kills, then finish."""
    config, place, rng = Config(**json.loads(Path(configuration).read_text())), Path(folder), random.Random(int(seed))
    told = {"killed": 0, "started_over": 0, "cut_off": 0, "unnamed": 0}
    longest = 1.0
    while told["killed"] < int(kills):
        if load_complete(place, config):  # it was too fast: once more from the beginning, with less time between
            (place / "result.json").unlink()
            told["started_over"] += 1
            longest *= 0.7
        kind = ("", "cut_off", "", "unnamed")[told["killed"] % 4]
        how = (kind, rng.randint(1, 4), rng.random()) if kind else None
        if attempt(place, config, 60.0 if kind else rng.uniform(0.05, longest), how):
            told["killed"] += 1
            if kind:
                told[kind] += 1
    assert load_complete(place, config) or not attempt(place, config, 1e9)
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])

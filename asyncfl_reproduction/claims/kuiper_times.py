"""KUIPER's claims about printed times of boards, assistants and schedules, which need no recorded cell."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from asyncfl_reproduction.claims.base import ARITHMETIC, CLOCK, CONSTRUCTED, Claim
from asyncfl_reproduction.claims.findings import Finding
from asyncfl_reproduction.claims.measured import Measured
from asyncfl_reproduction.measure import kuiper as measure
from asyncfl_reproduction.published import published
from asyncfl_reproduction.verdicts import FAILS, HOLDS


def as_finding(holds: bool, text: str) -> Finding:
    """Return a finding that holds or fails, for a claim that numbers alone decide, without a statistical test."""
    return Finding(HOLDS if holds else FAILS, text)


def printed_seconds(table: str) -> dict[str, dict[str, float]]:
    """Return seconds by data set and board: Table 1's are per epoch, and Table 2's for the whole test set."""
    found = published("KUIPER", table).set_index(["dataset", "device"])["value"]
    boards = measure.BOARDS.items()
    return {data: {name: float(found[data, printed]) for name, printed in boards} for data in measure.LAWS}


def boards_in_order(m: Measured) -> Finding:
    """Check that printed seconds fall from Nano to AGX, and that the delay laws use these seconds."""
    printed = printed_seconds("Table 1")
    falling = all((np.diff(list(seconds.values())) < 0).all() for seconds in printed.values())
    same = all(measure.epoch_seconds(data) == seconds for data, seconds in printed.items())
    text = "; ".join(f"{data}: " + " > ".join(f"{s:g}" for s in by.values()) for data, by in printed.items())
    return as_finding(falling and same, f"{text} s; {'the' if same else 'not the'} delay laws' seconds")


def ratio_between(board: str, low: float, high: float) -> Finding:
    """Check that a board takes ``low`` to ``high`` times as long as an AGX, on both data sets."""
    ratios = [seconds[board] / seconds["AGX"] for seconds in printed_seconds("Table 1").values()]
    text = f"{board} / AGX: " + " and ".join(f"{ratio:.2f}" for ratio in ratios) + f"; wanted {low:g} to {high:g}"
    return as_finding(all(low <= ratio <= high for ratio in ratios), text)


def more_than_the_last_layer(m: Measured) -> Finding:
    """Check that training on a clip takes longer than two forward passes, on every board and both data sets.

    Training every layer takes about three passes, and training the last layer alone takes about one
    (:data:`~asyncfl_reproduction.measure.kuiper.PASSES`), so two is the middle. The paper does not print how many clips
    the test set has. The claim assumes as many clips per video as in training; with one clip per test video, the
    numbers cannot distinguish the two.
    """
    epochs, tests = printed_seconds("Table 1"), printed_seconds("Table 2")
    of = {data: (data, epochs[data], tests[data]) for data in measure.LAWS}
    passes = {data: list(measure.passes_a_clip(*one).values()) for data, one in of.items()}
    several = measure.HMDB51_CLIPS / measure.VIDEOS["HMDB51"][0]
    single = measure.passes_a_clip(*of["HMDB51"], clips_a_video=several).values()
    every, last = measure.PASSES["all"], measure.PASSES["last"]
    text = "; ".join(f"{data} {_one_decimal(found)}" for data, found in passes.items())
    return as_finding(
        min(map(min, passes.values())) > 2,
        f"forward passes a clip on {', '.join(measure.BOARDS)}: {text}; every layer takes {every:.1f}, the last alone "
        f"{last:.1f}; with one clip for each test video HMDB51 has {_one_decimal(single)}",
    )


def _one_decimal(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in values)


def assistants_cost_time(m: Measured) -> Finding:
    """Check that the printed percentages of added training time agree with the printed training times."""
    table = published("KUIPER", "Table 3").set_index(["metric", "teaching_assistants"])["value"]
    hours = table["training time"].astype(float)
    ours = [100 * (hours[count] / hours["0"] - 1) for count in "123"]
    printed = [float(table["training time increase over no assistant", count]) for count in "123"]
    close = np.allclose(ours, printed, atol=0.06)
    return as_finding(close and printed == sorted(printed), ", ".join(f"+{value:.1f}%" for value in ours))


def distilling_costs_43_percent(m: Measured) -> Finding:
    """Check that, by the printed times, distilling takes 1.43 times as long as training from scratch."""
    table = published("KUIPER", "Table 4").set_index("method")["value"]
    ratio = float(table["distillation, no assistant"]) / float(table["train from scratch"])
    return as_finding(round(ratio, 2) == 1.43, f"{ratio:.3f} times as long")


def asynchronous_saves_two_fifths(m: Measured) -> Finding:
    """Check that bursts of 2 take 0.55 to 0.65 times as long as synchronous rounds with as many client updates."""
    ratios = {
        data: measure.seconds_of_80_epochs(data, "kuiper") / measure.seconds_of_80_epochs(data, "fedavg")
        for data in measure.LAWS
    }
    text = ", ".join(f"{data} {ratio:.2f}" for data, ratio in ratios.items())
    holds = all(0.55 <= ratio <= 0.65 for ratio in ratios.values())
    return as_finding(holds, f"bursts of 2 against synchronous rounds: {text}")


TIMES = [
    Claim("KU-T1-a", "Tables 1-2", "an epoch takes longest on Nano, then TX2, NX, AGX, on both data sets", "holds",
          boards_in_order, CONSTRUCTED, because="the claim is the table: its numbers are compared with themselves"),
    Claim("KU-T1-b", "Tables 1-2", "Nano is 4.5 to 5 times slower than AGX", "holds",
          lambda m: ratio_between("Nano", 4.5, 5.0), ARITHMETIC),
    Claim("KU-T1-c", "Tables 1-2", "TX2 is about 3 times slower than AGX (ours: within 10%)", "fails: 3.47 and 3.50",
          lambda m: ratio_between("TX2", 2.7, 3.3), ARITHMETIC),
    Claim("KU-T1-d", "Tables 1-2", "an epoch takes more than two forward passes a clip, as it does if every layer is "
          "trained (ours: split 1, as many clips a video in testing as in training)", "holds: 2.1 to 8.3",
          more_than_the_last_layer, ARITHMETIC),
    Claim("KU-T3-b", "Table 3", "1, 2 and 3 assistants lengthen training by 23.2, 54.7 and 90.8% (printed times)",
          "holds", assistants_cost_time, ARITHMETIC),
    Claim("KU-T4-a", "Table 4", "asynchronous training takes 0.55 to 0.65 of synchronous time for 80 epochs (ours: as "
          "many client updates, simulated with Table 1's times)", "holds", asynchronous_saves_two_fifths, CLOCK),
    Claim("KU-T4-b", "Table 4", "distilling without assistant takes 1.43 times as long as training from scratch "
          "(printed times)", "holds", distilling_costs_43_percent, ARITHMETIC),
]  # fmt: skip

"""What KUIPER's figures claim, as predicates over recorded cells; ``kuiper.py`` lists them.

The paper's figures print no values, so most claims are orderings. A comparison of cells that a tier does not have
is left out of that tier's verdict, which says how many were.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from asyncfl_lite.reproduction.claims.base import HOLDS, NOT_RUN, Finding, Measured, all_ran
from asyncfl_lite.reproduction.claims.kuiper_comparisons import (
    cell,
    gap,
    growing,
    larger,
    no_difference,
    rising,
    sooner_in_order,
    time_of_round,
    unimodal,
    unmoved,
)
from asyncfl_lite.reproduction.published import published

BIASES = ("0", "0.5", "0.8", "1")
BASELINES = ("oort", "fedbuff", "fedasync")
METHODS = ("kuiper", *BASELINES)
PANELS = ("fig3a", "fig3b", "fig3c")
FEDERATION = {"4": "fig3a", "12": "fig3b"}
COUNTS = ("12", "20", "50", "100")
LARGE_COUNTS = ("10", "100", "500", "1000")
IMAGES = {"mnist": ("10", "50", "100", "200", "500", "1000"), "fmnist": LARGE_COUNTS, "cifar10": LARGE_COUNTS}
TEXTS = {"shakespeare": LARGE_COUNTS, "pydoc": ("50",)}
BURSTS = ("2", "4", "6", "8", "10")
FRAMES = {"hmdb51": ("1", "2", "4", "6", "8", "16", "32"), "ucf101": ("4", "8", "16", "32", "64")}
NEAR_CHANCE = 5.0
LITTLE = 5.0


def bursts_of(method: str) -> list[str]:
    """Return Fig. 6's cells of a method by burst size; 7 is FedBuff's alone."""
    sizes = ("2", "4", "6", "7", "8", "10") if method == "fedbuff" else BURSTS
    return [of_burst(size, method) for size in sizes]


def of_burst(size: str, method: str) -> str:
    """Return Fig. 6's cell; a burst of 4 is Fig. 3(b)'s."""
    return cell("fig3b", "bias0.8", method) if size == "4" else cell("fig6", f"k{size}", method)


def alone(clients: str, bias: str) -> tuple[str, str]:
    """Return KUIPER's cell and that of clients trained alone."""
    return cell(FEDERATION[clients], f"bias{bias}", "kuiper"), cell("fig2", f"clients{clients}-bias{bias}", "alone")


def above_alone(m: Measured) -> Finding:
    """Whether KUIPER is above clients trained alone, in both set-ups at every bias."""
    return all_ran(m.above(*alone(clients, bias)) for clients in FEDERATION for bias in BIASES)


def gaps_to_alone(m: Measured, clients: str) -> list[tuple[str, np.ndarray | None]]:
    """Return KUIPER's gap to clients trained alone by bias, named."""
    return [(f"gap of {clients} clients at bias {bias}", gap(m, *alone(clients, bias))) for bias in BIASES]


def largest_gap_with_few(m: Measured) -> Finding:
    """Whether the largest of those gaps is larger with 4 clients than with 12."""
    largest = []
    for clients in FEDERATION:
        known = [one for one in gaps_to_alone(m, clients) if one[1] is not None]
        largest.append(max(known, key=lambda one: one[1].mean(), default=(f"gap of {clients} clients", None)))
    return larger(*largest)


def gains_as_printed(m: Measured) -> Finding:
    """Whether KUIPER is above Oort and FedBuff at bias 1 by more than the captions say."""
    findings = []
    for panel in PANELS:
        for _, row in published("KUIPER", f"Fig. 3({panel[-1]}) caption").iterrows():
            ours, other = (cell(panel, "bias1", method) for method in ("kuiper", row["baseline"].lower()))
            findings.append(m.above(ours, other, margin=float(row["value"])))
    return all_ran(findings)


def above_baselines(m: Measured, folders: Iterable[str], baselines: Sequence[str] = BASELINES) -> Finding:
    """Whether KUIPER is above each baseline in each of these folders of cells."""
    return all_ran(m.above(cell(at, "kuiper"), cell(at, other)) for at in folders for other in baselines)


def gap_at_bias_1(m: Measured) -> Finding:
    """Whether KUIPER's gap to each baseline is larger at bias 1 than at bias 0."""
    pairs = [
        [(f"{panel} gap to {other} at bias {bias}", gap(m, *(cell(panel, f"bias{bias}", x) for x in ("kuiper", other))))
         for bias in ("1", "0")]
        for panel in PANELS for other in BASELINES
    ]  # fmt: skip
    return all_ran(larger(*pair) for pair in pairs)


def best_on_other_tasks(m: Measured) -> Finding:
    """Accuracies should be highest, perplexities lowest."""
    texts, images = (
        [f"fig5/{task}-clients{count}" for task, counts in tasks.items() for count in counts]
        for tasks in (TEXTS, IMAGES)
    )
    lower = (m.above(cell(at, b), cell(at, "kuiper"), number="final_perplexity") for at in texts for b in BASELINES)
    return all_ran([above_baselines(m, images), *lower])


def round_times_in_order(m: Measured) -> Finding:
    """Whether a version takes Oort longer than FedBuff and KUIPER, and longer with larger bursts."""

    def time(name: str) -> tuple[str, np.ndarray | None]:
        return f"time of {name.removeprefix('kuiper/')}", time_of_round(m, name)

    pairs = [(of_burst(k, x), of_burst(k, y)) for k in BURSTS for x, y in (("oort", "fedbuff"), ("fedbuff", "kuiper"))]
    order = [larger(time(longer), time(shorter)) for longer, shorter in pairs]
    grown = [growing(map(time, bursts_of(method))) for method in METHODS[:3]]
    return all_ran([*order, *grown])


def all_above_dropped(m: Measured) -> Finding:
    """Whether dropping the slowest costs accuracy at every bias, and more at a larger one."""
    pairs = {bias: [cell("fig7", f"bias{bias}", which) for which in ("kuiper", "kuiper-dropped")] for bias in BIASES}
    gaps = growing((f"loss by dropping at bias {bias}", gap(m, *pair)) for bias, pair in pairs.items())
    return all_ran([*(m.above(*pair) for pair in pairs.values()), gaps])


def between_synchronous_and_others(m: Measured) -> Finding:
    """Whether KUIPER with stragglers lies below rounds without any and above other methods."""
    at = [f"fig7/bias{bias}" for bias in BIASES]
    ideal = [m.above(cell(one, "sync-no-delay"), cell(one, "kuiper")) for one in at]
    return all_ran([*ideal, above_baselines(m, at)])


def loses_least_by_bias(m: Measured) -> Finding:
    """Whether with stragglers each other method loses more than KUIPER from bias 0 to 1."""
    lost = {x: (f"{x}'s loss from bias 0 to 1", gap(m, *(cell("fig7", f"bias{b}", x) for b in "01"))) for x in METHODS}
    return all_ran(larger(lost[other], lost["kuiper"]) for other in BASELINES)


def order_of_times_flips(m: Measured) -> Finding:
    """Whether KUIPER is soonest, then FedBuff at bias 0 and Oort at 0.8."""
    orders = (("0", ("kuiper", "fedbuff", "oort")), ("0.8", ("kuiper", "oort", "fedbuff")))
    return all_ran(sooner_in_order(m, [cell("fig8", f"bias{b}", method) for method in order]) for b, order in orders)


def parts_help(m: Measured) -> Finding:
    """Whether each part helps at bias 0.8, and the error reward makes no difference at bias 0.

    The full method's reward is by the received model's accuracy; ``kuiper/accuracy`` has the other readings.
    """
    parts = [f"fig9a/bias0.8/{part}" for part in ("no-burst", "no-staleness", "no-error")]
    full = cell("fig3b", "bias0.8", "kuiper")
    same = no_difference(m, cell("fig3b", "bias0", "kuiper"), cell("fig9a", "bias0", "no-error"))
    return all_ran([*(m.above(full, cell(part)) for part in parts), same])


def staleness_exponent_costs(m: Measured) -> Finding:
    """Whether an exponent of 1 costs more than the printed points against 0.7."""
    findings = []
    for _, row in published("KUIPER", "Fig. 9(b) text").iterrows():
        milder, harder = (cell("fig9b", f"bias{row['noniid_bias']}", f"alpha{alpha}") for alpha in ("0.7", "1"))
        findings.append(m.above(milder, harder, margin=float(row["value"])))
    return all_ran(findings)


def mixing_unimodal(m: Measured) -> Finding:
    """Whether accuracy rises and falls with the mixing weight, and a weight of 0 changes nothing."""
    curves, still = [], []
    for bias in BIASES[:3]:
        betas = [cell("fig9c", f"bias{bias}", f"beta{beta}") for beta in ("0", "0.3", "0.5", "0.9")]
        curves.append(unimodal(m, [*betas[:3], cell("fig3b", f"bias{bias}", "kuiper"), betas[3]]))
        still.append(unmoved(m, betas[0]))
    shape, stays = all_ran(curves), all_ran(still)
    if (shape.verdict, stays.verdict) == (NOT_RUN, HOLDS):  # half of the claim is not the claim
        return Finding(NOT_RUN, f"no curve was run; {stays.detail}")
    return all_ran([shape, stays])


def loss_grows_with_clients(m: Measured) -> Finding:
    """Whether the loss from bias 0 to 1 is larger with more clients, on each task."""

    def lost(task: str, clients: str) -> tuple[str, np.ndarray | None]:
        pair = (cell("fig10", f"{task}-clients{clients}", f"bias{bias}") for bias in ("0", "1"))
        return f"loss on {task} with {clients} clients", gap(m, *pair)

    return all_ran(growing(lost(task, clients) for clients in counts) for task, counts in IMAGES.items())


def rises_with_frames(m: Measured) -> Finding:
    """Whether central training gains from more frames, on each data set."""
    central = {"hmdb51": "8", "ucf101": "32"}
    return all_ran(
        rising(m, [cell("fig16", data, "central") if frames == shared else cell("fig11", data, f"frames{frames}")
                   for frames in FRAMES[data]])
        for data, shared in central.items()
    )  # fmt: skip


def central_less_than_two_above(m: Measured) -> Finding:
    """Whether central training is above KUIPER on 12 devices at bias 0, by less than 2 points."""
    central, ours = cell("fig16", "hmdb51", "central"), cell("fig3b", "bias0", "kuiper")
    return all_ran([m.above(central, ours), m.above(ours, central, margin=-2.0)])


def slow_board_hurts(m: Measured) -> Finding:
    """Whether a slow board lowers accuracy and delays the target."""
    pairs = [[cell("fig12", boards, method) for boards in ("homogeneous", "slow")] for method in METHODS[:3]]
    return all_ran([*(m.above(*pair) for pair in pairs), *(sooner_in_order(m, pair) for pair in pairs)])


def slow_board_flips(m: Measured) -> Finding:
    """Whether Oort is sooner than FedBuff with equal boards and later with a slow one."""
    orders = (("homogeneous", ("oort", "fedbuff")), ("slow", ("fedbuff", "oort")))
    return all_ran(sooner_in_order(m, [cell("fig12", boards, method) for method in order]) for boards, order in orders)


def dropping_costs_at_high_bias(m: Measured) -> Finding:
    """Whether dropping the slowest costs little at bias 0 and 0.5, and more at 0.8."""
    pairs = {bias: [cell("fig13", f"bias{bias}", delay) for delay in ("5x", "dropped")] for bias in BIASES[:3]}
    cost = {bias: (f"cost at bias {bias}", gap(m, *pair)) for bias, pair in pairs.items()}
    little = (m.above(dropped, whole, margin=-LITTLE) for whole, dropped in (pairs["0"], pairs["0.5"]))
    return all_ran([*little, larger(cost["0.8"], cost["0"]), larger(cost["0.8"], cost["0.5"])])


def start_helps(m: Measured) -> Finding:
    """Whether the distilled start lifts every method, FedAsync most."""
    pairs = {x: (cell("fig3b", "bias0", x), cell("fig14b", "scratch", x)) for x in METHODS}
    gains = {x: (f"gain of {x}", gap(m, *pair)) for x, pair in pairs.items()}
    most = (larger(gains["fedasync"], gains[other]) for other in METHODS if other != "fedasync")
    return all_ran([*(m.above(*pair) for pair in pairs.values()), *most])


def soonest_with_smaller_burst(m: Measured) -> Finding:
    """Whether KUIPER with bursts of 4 is sooner at the target than Oort with 6 and FedBuff with 7."""
    others = (of_burst("6", "oort"), of_burst("7", "fedbuff"))
    return all_ran(sooner_in_order(m, [of_burst("4", "kuiper"), other]) for other in others)


def rises_with_slices(m: Measured) -> Finding:
    """Whether accuracy rises with clients that hold a fiftieth of the data each."""
    fewer = [cell("fig4c", f"clients{clients}", "kuiper") for clients in (12, 20, 30, 40)]
    return rising(m, [*fewer, cell("fig4", "bias0-clients50", "kuiper")])


def above_at_each_count(m: Measured) -> Finding:
    """Whether KUIPER is above Oort and FedBuff at each number of clients."""
    folders = [f"fig4/bias{bias}-clients{clients}" for bias in BIASES[:2] for clients in COUNTS]
    return above_baselines(m, folders, BASELINES[:2])

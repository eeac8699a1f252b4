"""KUIPER's claims, with the identifiers of the list of experiments."""

from __future__ import annotations

from asyncfl_lite.reproduction.claims import kuiper_figures as figures
from asyncfl_lite.reproduction.claims.base import Claim, all_ran
from asyncfl_lite.reproduction.claims.kuiper_comparisons import below, cell, growing, rising
from asyncfl_lite.reproduction.claims.kuiper_figures import (
    BASELINES,
    BIASES,
    BURSTS,
    COUNTS,
    FEDERATION,
    METHODS,
    PANELS,
    of_burst,
)
from asyncfl_lite.reproduction.claims.kuiper_simulated import SIMULATED


def _starts(*starts: str) -> list[str]:
    return [cell("table3", start) for start in starts]


KUIPER = [
    *SIMULATED,
    Claim("KU-T3-a", "Table 3", "accuracy rises with 0 to 3 teaching assistants", "holds",
          lambda m: rising(m, _starts(*(f"assistants-{count}" for count in range(4))))),
    Claim("KU-F14a-a", "Fig. 14(a)", "from scratch < distilled < distilled with one assistant", "holds",
          lambda m: rising(m, _starts("scratch", "assistants-0", "assistants-1"))),
    Claim("KU-F2-a", "Fig. 2", "KUIPER above clients trained alone, at every bias", "not printed",
          figures.above_alone),
    Claim("KU-F2-b", "Fig. 2", "its gap to clients trained alone grows with bias", "not printed",
          lambda m: all_ran(growing(figures.gaps_to_alone(m, clients)) for clients in FEDERATION)),
    Claim("KU-F2-c", "Fig. 2", "the largest such gap is larger with 4 devices than with 12", "holds: 15 and 8",
          figures.largest_gap_with_few),
    Claim("KU-F3-a", "Fig. 3", "at bias 1 KUIPER above Oort by 5, 9, 9 points or more and above FedBuff by 8, 12, 10",
          "printed", figures.gains_as_printed),
    Claim("KU-F3-b", "Fig. 3", "KUIPER above Oort, FedBuff and FedAsync at every bias", "not printed",
          lambda m: figures.above_baselines(m, (f"{panel}/bias{bias}" for panel in PANELS for bias in BIASES))),
    Claim("KU-F3-c", "Fig. 3", "its gap to each baseline is larger at bias 1 than at bias 0", "not printed",
          figures.gap_at_bias_1),
    Claim("KU-F3-d", "Fig. 3", "Oort above FedBuff at bias 1", "holds",
          lambda m: all_ran(m.above(cell(p, "bias1", "oort"), cell(p, "bias1", "fedbuff")) for p in PANELS)),
    Claim("KU-F4-a", "Fig. 4", "KUIPER above Oort and FedBuff at each number of clients", "not printed",
          figures.above_at_each_count),
    Claim("KU-F4-b", "Fig. 4(c)", "with all data cut among more clients, KUIPER's accuracy falls", "not printed",
          lambda m: rising(m, [cell("fig4", f"bias0-clients{n}", "kuiper") for n in reversed(COUNTS)])),
    Claim("KU-F4-c", "Fig. 4(c)", "with a slice of the data a client, KUIPER's accuracy rises with clients",
          "not printed", figures.rises_with_slices),
    Claim("KU-F4-d", "Fig. 4(b)", "with 50 clients and bias 0.5 KUIPER is near chance (ours: below 5%; chance is 2 to "
          "2.5%)", "not printed", lambda m: below(m, cell("fig4", "bias0.5-clients50", "kuiper"), figures.NEAR_CHANCE)),
    Claim("KU-F5-a", "Fig. 5", "KUIPER best on other tasks at every number of clients", "not printed",
          figures.best_on_other_tasks),
    Claim("KU-F6-a", "Fig. 6(a)", "accuracy rises with burst size, each method", "not printed",
          lambda m: all_ran(rising(m, figures.bursts_of(method)) for method in METHODS[:3])),
    Claim("KU-F6-b", "Fig. 6(a)", "KUIPER not below Oort and FedBuff at every burst size", "not printed",
          lambda m: all_ran(m.above(of_burst(k, "kuiper"), of_burst(k, x)) for k in BURSTS for x in BASELINES[:2])),
    Claim("KU-F6-c", "Fig. 6(b)", "KUIPER (K = 4) sooner at the target than Oort (K = 6) and FedBuff (K = 7)",
          "holds: 11% and 10%", figures.soonest_with_smaller_burst),
    Claim("KU-F6-d", "Fig. 6(c)", "time a version: Oort > FedBuff ≥ KUIPER, rising with burst size", "not printed",
          figures.round_times_in_order),
    Claim("KU-F7-a", "Fig. 7(a)", "KUIPER with all 12 devices above KUIPER without the 4 slowest, more so with bias",
          "not printed", figures.all_above_dropped),
    Claim("KU-F7-b", "Fig. 7(b)", "synchronous without delay ≥ KUIPER with stragglers ≥ the other methods with them",
          "not printed", figures.between_synchronous_and_others),
    Claim("KU-F7-c", "Fig. 7(b)", "with stragglers KUIPER loses least from bias 0 to 1", "not printed",
          figures.loses_least_by_bias),
    Claim("KU-F8-a", "Fig. 8(a)", "KUIPER most accurate at each bias with UCF101's times", "not printed",
          lambda m: figures.above_baselines(m, (f"fig8/bias{bias}" for bias in BIASES))),
    Claim("KU-F8-b", "Fig. 8(b)", "KUIPER soonest at the target, Oort after FedBuff at bias 0, before it at 0.8",
          "not printed", figures.order_of_times_flips),
    Claim("KU-F9-a", "Fig. 9(a)", "bursts, staleness weight and error reward each help at bias 0.8; the error reward "
          "makes no difference at bias 0", "not printed", figures.parts_help),
    Claim("KU-F9-b", "Fig. 9(b)", "staleness exponent 1 costs 4 points or more against 0.7 at bias 0.5, 8 at 0.8",
          "printed", figures.staleness_exponent_costs),
    Claim("KU-F9-c", "Fig. 9(c)", "accuracy is unimodal in the mixing weight, and at 0 the model stays as it began",
          "not printed", figures.mixing_unimodal, of_constant_answers=True),
    Claim("KU-F10-a", "Fig. 10", "KUIPER's loss from bias 0 to 1 grows with the number of clients", "not printed",
          figures.loss_grows_with_clients),
    Claim("KU-F11-a", "Fig. 11", "central accuracy rises with frames a clip", "not printed", figures.rises_with_frames),
    Claim("KU-F16-a", "Fig. 16", "central training above KUIPER (ours: 12 devices, bias 0), by less than 2 points",
          "holds: 1.65", figures.central_less_than_two_above),
    Claim("KU-F12-a", "Fig. 12", "one slow board of four lowers accuracy and delays the target, each method",
          "not printed", figures.slow_board_hurts),
    Claim("KU-F12-b", "Fig. 12", "Oort sooner than FedBuff with equal boards, later with a slow one", "not printed",
          figures.slow_board_flips),
    Claim("KU-F13-a", "Fig. 13", "dropping the slowest of four costs little (ours: under 5 points) at bias 0 and 0.5, "
          "more at 0.8", "not printed", figures.dropping_costs_at_high_bias),
    Claim("KU-F14b-a", "Fig. 14(b)", "the distilled start helps every method, FedAsync most", "holds for two: +6, +3",
          figures.start_helps),
]  # fmt: skip

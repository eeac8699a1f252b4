"""The questions that no paper asks: their controls, and answers that follow the numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from asked import Asked

from asyncfl_reproduction.claims import NOT_RUN, OPEN, Measured
from asyncfl_reproduction.grid.cells import TWIN, Cell, expand_grid
from asyncfl_reproduction.league.across import (
    ANSWERED,
    LARGE,
    QUESTIONS,
    STATES,
    answer_questions,
)
from conftest import seeds_apart

TIER = Path(__file__).parents[2] / "asyncfl_reproduction/cells/league.yaml"


@pytest.fixture(scope="module")
def cells() -> dict[str, Cell]:
    """The league's cells and the questions' controls, those as printed left out."""
    return {cell.name: cell for cell in expand_grid(TIER) if not cell.name.endswith(TWIN)}


def runs(cells: dict[str, float], spread: float = 0.5) -> Measured:
    """Cells with ten seeds and accuracies in percent, which their curves never reach."""
    summaries, curves = {}, {}
    for cell, final in cells.items():
        row = seeds_apart(cell)
        accuracies = (final + spread * (row - row.mean()) / row.std(ddof=1)) / 100
        numbers = {"final_accuracy": accuracies, "last5_accuracy": accuracies}
        summaries[cell] = pd.DataFrame({**numbers, "parameters": 1000, "most_versions_in_flight": 12})
        curves[cell] = [pd.DataFrame({"time": [0.0, 1.0], "accuracy": [0.0, 0.0]})] * 10
    return Measured(summaries, curves)


def ask(name: str, measured: Measured) -> tuple[str, str]:
    return next(question for question in QUESTIONS if question.id == name).answer(measured)


def test_all_twelve_questions_are_asked():
    table = answer_questions(Measured({}))
    assert list(table["id"]) == [f"X-{number}" for number in range(1, 13)]
    assert set(table["state"]) == {NOT_RUN}
    assert set(STATES) == {ANSWERED, OPEN, NOT_RUN}


def test_every_run_gets_the_same_updates_and_is_tested_as_often(cells):
    for name, cell in cells.items():
        c = cell.config
        assert (c.rounds * c.buffer_size, c.rounds / c.eval_every) == (500, 20), name


@pytest.mark.parametrize(
    ("changed", "method", "differing"),
    [
        ("x3/fedadt-labels-only", "fedadt", {"settings.alpha_min", "settings.alpha_max"}),
        ("x3/fedadt-teacher-only", "fedadt", {"settings.alpha_min", "settings.alpha_max"}),
        ("x3/fedrevive-noise", "fedrevive", {"settings.generator_lr", "settings.latent_lr"}),
        ("x3/fedecho-strokes", "fedecho", {"settings.distill_set"}),
        ("x3/fedecho-noise", "fedecho", {"settings.distill_set"}),
        ("x4/large/fedrevive-half", "fedrevive", {"settings.beta_family"}),
        ("x4/large/afl_dw-half", "afl_dw", {"settings.beta_family"}),
        ("x5/fedecho-fixed-weight", "fedecho", {"settings.alpha_min", "settings.alpha_max"}),
        ("x5/fedadt-ramp-reversed", "fedadt", {"settings.alpha_min", "settings.alpha_max"}),
        ("x5/kuiper-equal-accuracy", "kuiper", {"settings.t0"}),
        ("x5/fedrevive-mean-weight", "fedrevive", {"settings.beta_family", "settings.beta_constant"}),
        ("x6/fedecho-charged", "fedecho", {"server_time"}),
        ("x6/fedrevive-charged", "fedrevive", {"server_time"}),
        ("x7/global-from-clients", "dd_fedrevive",
         {"settings.auxiliary", "settings.k_kd", "settings.kd_temperature"}),
        *((f"x10/in-flight-{n}/{method}", method, {"concurrency"})
          for n in (3, 10, 50) for method in ("fedbuff", "fedecho", "fedadt", "fedrevive")),
    ],
)  # fmt: skip
def test_a_control_differs_from_its_method_in_what_it_is_named_for(cells, changed, method, differing):
    ours, base = (cells[name].config.as_dict() for name in (f"questions/{changed}", f"{LARGE}/{method}"))
    own = {f"settings.{key}" for key in ours["settings"] if ours["settings"][key] != base["settings"][key]}
    assert own | {key for key in ours if key != "settings" and ours[key] != base[key]} == differing
    assert cells[f"questions/{changed}"].seeds == cells[f"{LARGE}/{method}"].seeds


def test_answers_ask_for_all_cells_and_no_others(cells):
    asked = Asked()
    answer_questions(Measured(asked, asked))
    assert asked.names - set(cells) == set()
    charged = {f"questions/x6/{method}-charged" for method in ("fedecho", "fedrevive")}  # asked for after FedBuff's
    assert set(cells) - asked.names == charged


@pytest.mark.parametrize(
    ("there", "begins", "state"),
    [((80, 90), "1 pairs of methods keep", ANSWERED), ((90, 80), "0 pairs of methods keep their order in all laws run, 1",
     ANSWERED), ((85, 85), "0 pairs of methods keep their order in all laws run, 0 reverse it, 1", OPEN)],
)  # fmt: skip
def test_reversals_are_counted(there, begins, state):
    uniform = "league/overlaid_mnist/uniform"
    m = runs({f"{LARGE}/fedbuff": 80, f"{LARGE}/fedadt": 90,
              f"{uniform}/fedbuff": there[0], f"{uniform}/fedadt": there[1]})  # fmt: skip
    answered, text = ask("X-2", m)
    assert answered == state
    assert text.startswith(begins)


def test_answers_mark_constant_answers_and_do_not_count_them():
    pair = runs({f"{LARGE}/fedbuff": 10, f"{LARGE}/fedecho": 80})
    pair.summaries[f"{LARGE}/fedbuff"][["largest_prediction_share", "worst_class_accuracy"]] = [1.0, 0.0]
    assert ask("X-1", pair) == (OPEN, "overlaid_mnist, large: fedecho 80.0 ? fedbuff 10.0 (constant answer)")
    assert "10.0%, 2 models" not in ask("X-11", pair)[1] and "10.0% (constant answer), 2" in ask("X-11", pair)[1]
    assert "+70.0 ± 0.6 (constant answer with 10 of 20 seeds)" in ask("X-12", pair)[1]
    three = runs({f"{LARGE}/{method}": at for method, at in (("fedbuff", 10), ("fedecho", 80), ("fedadt", 90))})
    assert ask("X-1", three)[0] == ANSWERED


def test_paired_tests_go_by_seed():
    fedbuff, fedadt = f"{LARGE}/fedbuff", f"{LARGE}/fedadt"
    m = runs({fedbuff: 80}, spread=5.0)  # a spread that pairing takes away
    shifted = m.summaries[fedbuff].assign(
        last5_accuracy=m.summaries[fedbuff]["last5_accuracy"] + 0.05 + seeds_apart("shifted") / 1e3
    )
    both = Measured(m.summaries | {fedadt: shifted})
    state, text = ask("X-12", both)
    assert state == ANSWERED and text.startswith("1 of 1 differences from FedBuff are clear at 5%")
    assert "; 1 stand" in text
    mixed = shifted.assign(last5_accuracy=np.roll(shifted["last5_accuracy"], 3))
    assert ask("X-12", Measured(m.summaries | {fedadt: mixed}))[0] == OPEN

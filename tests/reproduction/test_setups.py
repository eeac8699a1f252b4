"""The papers' settings: every printed row is a default, in `Config` as in the paper tier's grid, or is listed here."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pandas as pd
import pytest

from asyncfl_lite import Config
from asyncfl_lite.algorithms import make_algorithm
from asyncfl_lite.algorithms.fedadt import PASSES, TEMPERATURE
from asyncfl_lite.algorithms.fedrevive import ALPHA_ADV, PROMPTS, T_EST, FedRevive
from asyncfl_lite.models import MODELS
from asyncfl_lite.models.steps import BETAS, EPS
from asyncfl_lite.runs.config import PAPERS as SETUPS
from asyncfl_lite.runs.config import preset_of
from asyncfl_lite.simulator.scheduling import Refill
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.published import hyperparameters

PAPERS = {"FedEcho": "fedecho", "FedRevive": "fedrevive", "KUIPER": "kuiper", "FedADT": "fedadt"}
TASKS = {
    "CIFAR-10": "cifar10", "CIFAR-100": "cifar100", "GLUE-MRPC": "mrpc", "MathInstruct": "mathinstruct",
    "FEMNIST": "femnist", "20NewsGroups": "newsgroups20", "HMDB51": "hmdb51", "UCF101": "ucf101",
}  # fmt: skip
METHODS = {
    "FedBuff": "fedbuff", "CA2FL": "ca2fl", "FedAC": "fedac", "FADAS": "fadas", "FedEcho": "fedecho",
    "FedAvg": "fedavg", "AFL-DW": "afl_dw", "DD-FedRevive": "dd_fedrevive", "FedRevive": "fedrevive",
    "KUIPER": "kuiper", "FedADT": "fedadt",
}  # fmt: skip

FIELDS = {
    "local_lr": "client_lr", "client_lr": "client_lr", "lr": "client_lr", "global_lr": "server_lr",
    "server_lr": "server_lr", "lr_decay": "client_lr_decay", "buffer": "buffer_size", "clients": "clients",
    "concurrency": "concurrency", "dirichlet_alpha": "alpha", "local_batch": "batch_size", "batch": "batch_size",
    "local_epochs": "local_epochs", "local_iters": "local_steps", "rounds": "rounds", "global_iterations": "rounds",
    "horizon": "horizon", "weight_decay": "weight_decay", "local_optimizer": "client_optimizer",
    "sync_clients_per_round": "concurrency",
}  # fmt: skip
SWITCHES = {
    "distill_lr": "distill_lr", "distill_samples": "distill_samples", "clip_nu": "clip", "mix_alpha_min": "alpha_min",
    "mix_alpha_max": "alpha_max", "distill_optimizer": "distill_opt", "kd_lr": "kd_lr", "generator_lr": "generator_lr",
    "latent_noise_lr": "latent_lr", "feature_weight": "alpha_feat", 
    "synth_iters K_synth": "k_synth", "kd_steps K_KD": "k_kd", "kd_steps": "k_kd",
    "teacher_buffer c": "num_teachers", "kd_batch": "kd_batch_size",
    "probe_temperature": "t_probe", "beta constant": "beta_constant",
    "mixing beta": "mixing", "staleness_penalty alpha": "poly_a", "T_g": "alpha_versions",
    "kd_data_share": "kd_fraction", "kd_weight_min": "alpha_min",
    "kd_weight_max": "alpha_max",
}  # fmt: skip
"""A printed name -> the method's switch."""
SPECIAL = {
    ("FedEcho", "adam_beta1"): lambda config: BETAS[0],
    ("FedEcho", "adam_beta2"): lambda config: BETAS[1],
    ("FedEcho", "adam_eps"): lambda config: EPS,
    ("FedRevive", "adam_beta1"): lambda config: BETAS[0],
    ("FedRevive", "adv_weight"): lambda config: ALPHA_ADV,
    ("FedRevive", "probe_uploads T_est"): lambda config: T_EST,
    ("FedRevive", "soft_prompt_vectors"): lambda config: PROMPTS,
    ("FedRevive", "generator_period T_gen"): lambda config: FedRevive.t_gen,
    ("FedRevive", "synthesis_batch"): lambda config: FedRevive.synth_batch_size,
    ("FedRevive", "samples_per_client"): lambda config: config.partition_settings.samples_per_client,
    ("FedRevive", "token_limit"): lambda config: config.task_settings.length,
    ("FedRevive", "auxiliary_set_share"): lambda config: round(config.held_out / (1 - config.held_out), 3),
    ("FedRevive", "kd_temperature"): lambda config: make_algorithm(config.algorithm).temperature,
    ("FedADT", "kd_temperature"): lambda config: TEMPERATURE,
    ("FedADT", "kd_rounds"): lambda config: PASSES,
    ("FedADT", "concurrency"): lambda config: config.concurrency / config.clients,
    ("FedADT", "resample_batch"): lambda config: Refill(config.concurrency).batch,
    ("KUIPER", "frames per clip"): lambda config: config.task_settings.frames,
}  # fmt: skip
"""Printed values that are a property of something else."""

NOT_A_SETTING = {
    ("FedEcho", "runtime_uniform_low"): "Table 1's delays: tests/lite/test_delays.py",
    ("FedEcho", "runtime_uniform_high"): "Table 1's delays: tests/lite/test_delays.py",
    ("FedEcho", "max_share_of_clients_in_long_category"): "a share of clients: tests/lite/test_delays.py",
    ("FedEcho", "seeds"): "a cell has its seeds, a configuration one",
    ("FedRevive", "seeds"): "a cell has its seeds, a configuration one",
    ("FedADT", "seeds"): "a cell has its seeds, a configuration one",
    ("FedRevive", "beta_schedule"): "a name; its values are in tests/lite/test_fedrevive.py",
    ("FedRevive", "train: exponential, client mean"): "Appendix D's delays: tests/lite/test_delays.py",
    ("FedRevive", "download: constant"): "Appendix D's delays: tests/lite/test_delays.py",
    ("FedRevive", "upload: uniform around client mean"): "Appendix D's delays: tests/lite/test_delays.py",
    ("FedRevive", "upload half-width"): "Appendix D's delays: tests/lite/test_delays.py",
    ("FedRevive", "natural_writers_available"): "how many the data set has; 1,000 are taken",
    ("FedRevive", "target_weight"): "1, as the unit of the other weights",
    ("FedRevive", "validation_share"): "nothing is chosen on a validation set here",
    ("FedRevive", "test_share"): "the data sets' own test sets are used",
    ("FedRevive", "snippet_LM_parameters"): "texts of other topics stand in for those of a language model",
    ("FedRevive", "model_parameters"): "tests/lite/test_vision_models.py, tests/lite/test_text_models.py",
    ("KUIPER", "clients M, burst K (small)"): "the second of two set-ups, which Fig. 3(a)'s cells ask for",
    ("KUIPER", "burst K"): "Fig. 4's, which its cells ask for",
    ("KUIPER", "data slices"): "Fig. 4's, which its cells ask for",
    ("KUIPER", "epochs alone"): "Fig. 2's, which its cells ask for",
    ("KUIPER", "clients up to"): "Fig. 5's axis",
    ("KUIPER", "delay multipliers"): "Fig. 7's delay law: tests/lite/test_delays.py",
    ("FedADT", "response_time_uniform_low"): "the delay law: tests/lite/test_delays.py",
    ("FedADT", "response_time_uniform_high"): "the delay law: tests/lite/test_delays.py",
    ("FedADT", "aggregation beta"): "a formula: tests/lite/test_fedadt.py",
    ("FedADT", "kd_when"): "a rule: tests/lite/test_fedadt.py",
    ("FedADT", "target accuracy"): "a claim's, not a run's",
    **{
        ("KUIPER", name): "of the data"
        for name in (
            "classes",
            "videos",
            "clips",
            "size",
            "training samples at 8 frames per clip",
            "samples per client at 4 clients",
            "samples per client at 100 clients",
        )  # fmt: skip
    },
}
OF_A_FIGURE = {
    ("FedRevive", "Appendix E"): "milder heterogeneity, which Fig. 8's cells ask for",
    ("FedADT", "Fig. 1"): "another federation, which Fig. 1's cells ask for",
}
"""Printed settings of one figure: not what a configuration takes by itself."""
VARIED = {
    ("FedEcho", "table6"): "distill_samples",
    ("FedEcho", "table7"): "mix_alpha",
    ("FedEcho", "table11"): "clip_nu",
}
"""A paper's table -> the printed setting that its cells vary."""
EXCEPTIONS = {("FedRevive", "femnist", "samples_per_client"): "FEMNIST is dealt out by writer"}


def rows() -> pd.DataFrame:
    return pd.concat([hyperparameters(paper) for paper in PAPERS], ignore_index=True).query("artefact != 'missing'")


def tasks_of(row) -> list[str]:
    """The tasks of ours that a row speaks of."""
    paper = SETUPS[PAPERS[row.paper]]["tasks"]
    named = [TASKS[name] for name in str(row.dataset).split(" / ") if name in TASKS]
    return [task for task in paper if task in named] if named else list(paper)


def methods_of(row) -> list[str]:
    """The methods that a row speaks of."""
    if row.method == "all":
        methods = list(SETUPS[PAPERS[row.paper]]["methods"])
        synchronous = {"fedavg", "fedavgm"}  # for which "buffer" is the round
        return [name for name in methods if row.name == "sync_clients_per_round" or name not in synchronous]
    return [METHODS[name] for name in row.method.split(" / ")]


def printed(row):
    value = str(row.value).strip()
    if value.lower() in ("adam", "adamw", "sgd"):
        return value.lower()
    return float(value)


def found(config: Config, row):
    """What a configuration has for a row's setting."""
    if (row.paper, row.name) in SPECIAL:
        return SPECIAL[row.paper, row.name](config)
    if row.name in FIELDS and not (row.paper == "KUIPER" and row.name == "batch" and row.method != "KUIPER"):
        return getattr(config, FIELDS[row.name])
    return getattr(config.settings, SWITCHES[row.name])


def asked(row) -> dict:
    """The part of a row's setting that a configuration is told."""
    parts = dict(part.split("=", 1) for part in str(row.setting).split(";") if "=" in part)
    told = {"alpha": float(parts["alpha"])} if "alpha" in parts else {}
    if "delay" in parts and row.paper == "FedEcho":
        told["delay"] = f"fedecho_{parts['delay']}"
    return told


def checks():
    """Every (row, task, method) that is to be looked up."""
    for row in rows().itertuples():
        if (row.paper, row.name) in NOT_A_SETTING or (row.paper, row.setting) in OF_A_FIGURE:
            continue
        if row.method == "server distillation" or row.name == "clients M, burst K (large)":
            continue  # tests of their own below
        for task in tasks_of(row):
            for method in methods_of(row):
                if (row.paper, task, row.name) not in EXCEPTIONS:
                    yield row, task, method


@functools.cache
def configuration(preset, task, algorithm, **told):
    return Config(task=task, algorithm=algorithm, **{**told, **({"preset": preset} if preset else {})})


def cached(preset, row, task, method):
    return configuration(preset, task, method, **asked(row))


def test_every_printed_setting_is_the_default_of_its_papers_set_up():
    wrong, checked = [], set()
    for row, task, method in checks():
        value = found(cached(PAPERS[row.paper], row, task, method), row)
        checked.add(row.Index)
        if value != printed(row):
            wrong.append((row.paper, task, method, row.name, row.value, value))
    assert not wrong
    assert len(checked) > 250


def test_a_plain_configuration_takes_the_printed_setting_too():
    """Without naming a paper: for each method on each task, the paper that `preset_of` says."""
    wrong, pairs = [], set()
    for row, task, method in checks():
        if preset_of(task, method) == PAPERS[row.paper]:
            pairs.add((task, method))
            value = found(cached(None, row, task, method), row)
            if value != printed(row):
                wrong.append((row.paper, task, method, row.name, row.value, value))
    assert not wrong
    assert pairs >= {
        ("mrpc", "fedbuff"), ("cifar10", "fedecho"), ("femnist", "fedbuff"), ("femnist", "fedavg"),
        ("newsgroups20", "fedbuff"), ("cifar10", "fedadt"), ("hmdb51", "kuiper"), ("femnist", "fedrevive"),
    }  # fmt: skip


def test_every_row_is_checked_or_listed_with_its_reason_and_no_list_is_out_of_date():
    known = {(row.paper, row.name) for row in rows().itertuples()}
    assert set(NOT_A_SETTING) <= known and all(NOT_A_SETTING.values())
    assert {(row.paper, row.setting) for row in rows().itertuples()} >= set(OF_A_FIGURE)
    used = {(row.paper, task, row.name) for row in rows().itertuples() for task in tasks_of(row)}
    assert set(EXCEPTIONS) <= used and all(EXCEPTIONS.values())


def test_the_paper_tier_of_the_grid_says_the_same():
    """No cell of a paper's tier overrides what the paper prints for all of its experiments."""
    cells = expand_grid(Path(__file__).parents[2] / "asyncfl_reproduction/cells" / "paper.yaml")
    of_tables = [cell for cell in cells if re.search(r"/table\d+/", cell.name)]
    checked = 0
    for row, task, method in checks():
        if row.name == "dirichlet_alpha" or row.paper == "KUIPER":  # a table's columns; figures change the rest
            continue
        for cell in of_tables:
            config, wanted = cell.config, {"task": task, "algorithm": method, **asked(row)}
            if cell.name.startswith(PAPERS[row.paper]) and all(getattr(config, k) == v for k, v in wanted.items()):
                at_fixed_weight = "fixed" in cell.name and "weight" in row.name
                ends_early = "table3/" in cell.name and row.name == "horizon"
                other_share = "table4/" in cell.name and row.name in ("concurrency", "resample_batch", "horizon")
                of_fedadt = row.paper == "FedADT" and (at_fixed_weight or ends_early or other_share)
                if not of_fedadt and VARIED.get((row.paper, cell.name.split("/")[1]), "no row") not in row.name:
                    assert found(config, row) == printed(row), (cell.name, row.name)
                    checked += 1
    assert checked > 1000


def test_kuipers_larger_federation_and_its_chain_of_teachers():
    for task in ("hmdb51", "ucf101"):
        config = Config(task=task, algorithm="kuiper")
        assert (config.clients, config.buffer_size) == (12, 4)
        chain = config.initial_settings
        printed_chain = {row.name: printed(row) for row in rows().itertuples() if row.method == "server distillation"}
        ours = {"batch": chain.batch_size, "lr": chain.lr, "weight_decay": chain.weight_decay,
                "momentum": chain.momentum, "epochs": chain.epochs, "optimizer": "sgd"}  # fmt: skip
        assert printed_chain == ours


WHOSE = {
    "fedecho": ("cifar10 fedecho", "cifar10 fedbuff", "cifar10 kuiper", "cifar10 fedprox"),
    "fedrevive": ("cifar10 fedavg", "femnist fedecho"), "fedadt": ("cifar10 fedadt", "cifar10 fedasync", "mnist fedecho"),
    "kuiper": ("hmdb51 fedbuff",), None: ("digits fedecho",),
}  # fmt: skip


@pytest.mark.parametrize("paper", WHOSE)
def test_whose_settings_a_configuration_takes(paper):
    assert {preset_of(*asked.split()) for asked in WHOSE[paper]} == {paper}


@pytest.mark.parametrize("paper", SETUPS)
def test_every_method_can_be_configured_on_every_task_of_a_paper(paper):
    from asyncfl_lite.algorithms import ALGORITHMS

    for task in SETUPS[paper]["tasks"]:
        for method in ALGORITHMS:
            config = Config(task=task, algorithm=method, preset=paper)
            assert Config(**config.as_dict()) == config
            assert config.model in MODELS

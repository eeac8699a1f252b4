"""The twelve exhibits, on four shelves: one buffer, stale updates, server memory, surroundings."""

from __future__ import annotations

from asyncfl_course.zoo.exhibit import Exhibit
from asyncfl_course.zoo.mutants import Mutation
from asyncfl_lite.algorithms import CA2FL, FADAS, KUIPER, FedAC, FedADT, FedAvgM, FedBuff, FedEcho, FedFa
from asyncfl_lite.algorithms.mixing import MixingMethod
from asyncfl_lite.base.errors import AsyncFLError, unknown_name

ARRIVALS = {"rounds": 500, "eval_every": 25}
"""Settings of methods that make a version of every update: as many updates as the others' 100 versions."""
TOGETHER = {"concurrency": 5, "buffer_size": 5}
"""Settings of synchronous methods."""

_BUFFER = (
    Exhibit(
        "A",
        "fedbuff",
        Mutation(FedBuff, "self._empty()\n        return self.new_version(x)",
                 "self.filled = 0\n        return self.new_version(x)"),
        "FedBuff: x ← x + η · mean of the M buffered updates.",
        {
            "mean": "the mean is taken over the wrong number of updates",
            "leftover": "something from one buffer is still there in the next",
            "rate": "the server learning rate is not applied, or is applied twice",
            "count": "the buffer closes one update early or late",
            "staleness": "stale updates get another weight than fresh ones",
        },
        "leftover",
        "Fill two buffers, the second with updates of zero. Which server still moves?",
        3,
        (
            {"buffer_size": 2, "server_lr": 0.5},
            {"buffer_size": 1, "server_lr": 1.0},
            {"buffer_size": 3, "server_lr": 0.3, "staleness_weight": "poly"},
            {"buffer_size": 4, "server_lr": 1.4, "buffer_weight": "samples"},
        ),
        config={"server_lr": 0.3},
    ),
    Exhibit(
        "B",
        "fedbuff",
        Mutation(FedBuff, "self.x + self.step_size() * mean", "self.x.add_(self.step_size() * mean)"),
        "FedBuff, again: x ← x + η · mean of the M buffered updates.",
        {
            "mean": "the mean is taken over the wrong number of updates",
            "leftover": "something from one buffer is still there in the next",
            "alias": "one tensor is both the new version and the old one",
            "rate": "the server learning rate is not applied, or is applied twice",
            "order": "the last update of a buffer counts more than the first",
        },
        "alias",
        "Keep `server.x` and a `.clone()` of it, and fill a buffer. Which of the two is still version 0?",
        5,
        (
            {"buffer_size": 2, "server_lr": 0.5},
            {"buffer_size": 1, "server_lr": 1.0},
            {"buffer_size": 3, "server_lr": 0.3, "staleness_weight": "poly_norm"},
        ),
        config={"vectorize": "off"},
        shares=True,
        known="PyTorch's tutorial on saving models warns of its cousin: state_dict() hands out references, no copies.",
    ),
    Exhibit(
        "C",
        "fedavg",
        Mutation(FedBuff, "self._sum / self._divisor", "self._sum / self.buffer_size"),
        "FedAvg with equal weights: x ← x + η · mean of the round's updates. A round closes early, by flush(), when "
        "the server stops waiting for lost ones.",
        {
            "rate": "the server learning rate is not applied, or is applied twice",
            "leftover": "something from one round is still there in the next",
            "flush": "flush() forgets the updates that have arrived",
            "short": "a short round is divided by the number that was planned",
            "samples": "updates are weighted by numbers of samples all the same",
        },
        "short",
        "Send one update of a round of three and flush(). How far should the server go, and how far does it go?",
        4,
        (
            {"buffer_size": 3, "server_lr": 0.5, "buffer_weight": "uniform"},
            {"buffer_size": 2, "server_lr": 1.0, "buffer_weight": "uniform"},
            {"buffer_size": 5, "server_lr": 1.4, "buffer_weight": "uniform"},
        ),
        ({"buffer_size": 1, "server_lr": 0.7, "buffer_weight": "uniform"},),
        config={
            **TOGETHER,
            "settings": {"buffer_weight": "uniform"},
            "faults": {"dropout": 0.3, "time_out": 60.0},
        },
    ),
)  # fmt: skip

_STALE = (
    Exhibit(
        "D",
        "fedasync",
        Mutation(
            MixingMethod,
            "(1.0 - weight) * self.x + weight * client_model",
            "weight * self.x + (1.0 - weight) * client_model",
        ),
        "FedAsync: x ← (1 - α_t) x + α_t x_i, where α_t = α s(τ) falls with staleness; `mixing_weight(τ)` is α_t.",
        {
            "staleness": "staleness is counted one too high or too low",
            "exponent": "s(τ) grows with staleness",
            "sides": "α_t is the weight of the old model, not of the client's",
            "base": "the client's model is rebuilt on the newest version",
            "start": "the mixing begins only at the second update",
        },
        "sides",
        "Send one fresh update. What share of the way does the server move? Then send one that is two versions late.",
        3,
        (
            {"mixing": 0.6},
            {"mixing": 0.3, "staleness_function": "constant"},
            {"mixing": 0.9, "staleness_function": "hinge", "hinge_b": 1.0},
        ),
        ({"mixing": 0.5, "staleness_function": "constant"},),
        config=ARRIVALS,
    ),
    Exhibit(
        "E",
        "fedfa",
        Mutation(FedFa, "self.start_of(update) + update.delta", "self.x + update.delta"),
        "FedFa: x ← mean of the last client models, which wait in a queue, `entries`, the newest last.",
        {
            "length": "the queue is one entry too long or too short",
            "end": "the queue loses its newest entry, not its oldest",
            "warm-up": "the mean divides by the queue's length before it is full",
            "base": "the client's model is rebuilt on the newest version",
            "delta": "the queue holds changes, not models",
        },
        "base",
        "Make a few versions, then send an update that is as stale as possible. What does the queue hold for it?",
        4,
        (
            {"queue_length": 3},
            {"queue_length": 10},
            {"queue_length": 1},
            {"queue_length": 2},
        ),
        config=ARRIVALS,
    ),
    Exhibit(
        "F",
        "kuiper",
        Mutation(KUIPER, '"received": "received_accuracy"', '"received": "trained_accuracy"'),
        "KUIPER: a burst's models are averaged with weights n_i (1 - acc_i), then mixed in; acc_i is the accuracy of "
        "the model that the client received.",
        {
            "samples": "the numbers of samples are left out",
            "sign": "good accuracies get more weight, not less",
            "moment": "the accuracy is that of the model after training",
            "staleness": "each client is mixed in by its own staleness, not by the burst's mean",
            "sum": "the weights are not divided by their sum",
        },
        "moment",
        "Send a burst in which two clients differ only in `received_accuracy`, and another in which they differ only "
        "in `trained_accuracy`.",
        5,
        (
            {"buffer_size": 2},
            {"buffer_size": 3, "mixing": 0.4},
            {"buffer_size": 2, "kuiper_norm": "delta"},
        ),
        ({"buffer_size": 2, "t0": 0.0}, {"buffer_size": 2, "acc": "post_eval"}),
        config={"client_lr": 0.1},
        known="This package once weighted KUIPER's clients by an accuracy during training; see lesson 05.",
    ),
)

_MEMORY = (
    Exhibit(
        "G",
        "ca2fl",
        Mutation(CA2FL, "self.cache.get(update.client)", "self._waiting.get(update.client)"),
        "CA²FL: x ← x + η (h + mean of Δ_i - h_i), where h_i is the last update of client i in the `cache` and h the "
        "mean of all h_i; then h_i ← Δ_i.",
        {
            "sign": "h is subtracted, not added",
            "order": "h_i is replaced before its difference is taken",
            "mean": "h divides by the number of clients that have reported, not of all",
            "client": "h_i is looked up by the index in the buffer, not by the client",
            "sum": "the replaced h_i stays in the running sum",
        },
        "order",
        "While the cache is empty, CA²FL should equal FedBuff. Does it?",
        4,
        (
            {"buffer_size": 2, "server_lr": 0.5},
            {"buffer_size": 1, "server_lr": 1.0},
            {"buffer_size": 3, "server_lr": 0.7},
        ),
        ({"buffer_size": 2, "server_lr": 0.5, "cache": False},),
        config={"server_lr": 0.3},
    ),
    Exhibit(
        "H",
        "fedecho",
        Mutation(FedEcho, "update.client", "self.filled"),
        "FedEcho: FedBuff, then distillation from the mean of every client's latest predictions, kept in `logits`.",
        {
            "renewal": "a client's first predictions are kept, and its later ones are dropped",
            "samples": "clients are weighted by their numbers of samples",
            "whose": "predictions are filed under the index in the buffer, not under the client",
            "teacher": "only the newest client is the teacher",
            "model": "predictions are those of the global model, not of the client's",
        },
        "whose",
        "Let all six clients report, and see which of them are in `server.logits`.",
        3,
        (
            {"buffer_size": 2, "distill_samples": 8, "distill_batch_size": 4, "distill_lr": 0.01},
            {"buffer_size": 3, "server_lr": 0.5, "distill_samples": 8, "distill_lr": 0.01, "teacher_avg": "probs"},
        ),
        config={"server_lr": 0.3, "settings": {"distill_samples": 200}},
    ),
    Exhibit(
        "I",
        "fadas",
        Mutation(FADAS, "torch.maximum(self.largest_square, self.square)", "self.square"),
        "FADAS: x ← x + η m / (√v̂ + ε), AMSGrad on the buffer's mean Δ: m and v are moving averages of Δ and Δ², and "
        "v̂ ← max(v̂, v) is `largest_square`.",
        {
            "bias": "the averages are corrected for their start at zero",
            "root": "the root of v̂ is left out",
            "moment": "m is updated after the step, not before",
            "maximum": "the maximum is not kept",
            "betas": "β₁ and β₂ are exchanged",
        },
        "maximum",
        "Send a large update and then many updates of zero, and print `largest_square`.",
        4,
        (
            {"buffer_size": 2, "server_lr": 0.1},
            {"buffer_size": 1, "server_lr": 0.01, "beta2": 0.9, "bias_correction": True},
            {"buffer_size": 3, "server_lr": 1.0, "beta1": 0.0, "delay_adaptive": True},
        ),
        config={"server_lr": 0.003},
        known="With the maximum it is AMSGrad, without it Adam: Reddi, Kale, Kumar (ICLR 2018) show where Adam fails.",
    ),
)

_AROUND = (
    Exhibit(
        "J",
        "fedac",
        Mutation(
            FedAC,
            "mean_gradient if update.correction is None else mean_gradient - update.correction",
            "mean_gradient",
        ),
        "FedAC: clients add C - C_i to their gradients, which `correction_for(client, control_sent())` gives. C_i, in "
        "`controls`, is the mean of the client's own gradients: -Δ_i / 0.01 for one step on the bench, minus the "
        "`correction` that its update reports.",
        {
            "sign": "clients are told to add C_i - C",
            "fresh": "a client without C_i gets no correction",
            "whose": "a client gets another client's C_i",
            "own": "C_i keeps the correction, which is thus fed back",
            "server": "C stays at zero",
        },
        "own",
        "Send a client's update twice, with `correction=0.5` and without. Which C_i does the server store?",
        5,
        (
            {"buffer_size": 2, "server_lr": 0.1},
            {"buffer_size": 1, "server_lr": 0.01, "floor": 0.3},
            {"buffer_size": 3, "server_lr": 0.1, "correction": "once"},
        ),
        config={"server_lr": 0.003},
    ),
    Exhibit(
        "K",
        "fedadt",
        Mutation(FedADT, "context.rng", "np.random"),
        "FedADT: a client model that is two versions late or more takes a pass over the server's labelled set, in an "
        "order that `context.rng` draws; then it is mixed in.",
        {
            "teacher": "the student is its own teacher",
            "fresh": "fresh models are distilled too",
            "random": "the order comes from a generator that is not the server's own",
            "order": "the order is the same at every pass",
            "rate": "distillation uses the server learning rate",
        },
        "random",
        "Do the same experiment twice, each time after `zoo.started(server)`. Call `np.random.seed(0)` before the "
        "first and `np.random.seed(1)` before the second.",
        4,
        (
            {"kd_lr": 0.1, "kd_batch_size": 2},
            {"kd_lr": 0.5, "kd_batch_size": 3, "kd_rounds": 2, "tau_kd": 0},
        ),
        ({"kd_lr": 0.0},),
        config=ARRIVALS,
    ),
    Exhibit(
        "L",
        "fedavgm",
        Mutation(FedAvgM, '(*FedAvg.state_names, "velocity")', "FedAvg.state_names"),
        "FedAvgM: v ← β v + mean of the round's updates, x ← x + η v. `state()` is what a checkpoint holds, "
        "and `restore(state)` loads it. Its run is stopped half-way and resumed.",
        {
            "momentum": "v is dampened by 1 - β",
            "start": "v starts at the first mean, not at zero",
            "saved": "v is not in the checkpoint",
            "version": "the version is counted from 0 again after a restart",
            "rate": "η is applied to the mean and again to v",
        },
        "saved",
        "Save `server.state()`, make a version, go back with `restore`, and make the same version again.",
        3,
        (
            {"buffer_size": 2, "server_lr": 0.5},
            {"buffer_size": 1, "server_lr": 1.0, "fedavgm_beta": 0.5},
            {"buffer_size": 3, "server_lr": 0.1, "buffer_weight": "uniform"},
        ),
        ({"buffer_size": 2, "server_lr": 0.5, "fedavgm_beta": 0.0},),
        config={**TOGETHER, "server_lr": 0.1},
        resumed=True,
    ),
)

SHELVES = {"one buffer": _BUFFER, "stale updates": _STALE, "memory": _MEMORY, "around the server": _AROUND}
EXHIBITS = {one.letter: one for shelf in SHELVES.values() for one in shelf}


def exhibit(letter: str) -> Exhibit:
    """Return the exhibit with this letter.

    Args:
        letter: A to L.

    Raises:
        AsyncFLError: there is no exhibit with this letter.

    Example:

    >>> from asyncfl_course import zoo
    >>> one = zoo.exhibit("A")
    >>> one.description
    'FedBuff: x ← x + η · mean of the M buffered updates.'
    >>> one.ask(lambda server: {"made a version": zoo.send(server, 1.0)}, buffer_size=1)["made a version"].tolist()
    [True, True]
    """
    if letter not in EXHIBITS:
        raise AsyncFLError(unknown_name("exhibit", letter, EXHIBITS))
    return EXHIBITS[letter]

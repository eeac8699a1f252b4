"""FedRevive: part of a stale update is replaced by distillation from the latest client models on synthetic data.

"Reviving Stale Updates: Data-Free Knowledge Distillation for Asynchronous Federated Learning", §2, Eqs. 3 and 4,
Appendices B and I. Four steps follow the arrival of an update (§2.2): its client's model becomes a teacher (1), a
synthesis adds inputs to a pool (2) and improves the generator (3), and the model learns from the teachers on this pool
(4), which gives the part Δ^KD of the revived update (Eq. 3). Details that the paper leaves open are options or
constants; their values are those of the authors' code, mostly for CIFAR-10. Losses, generator and soft prompts are in
:mod:`asyncfl_lite.algorithms.synthesis`. Of Algorithm 1, ``on_receive`` is line 6; clients and simulator do the rest.

DD-FedRevive distils on real instead of synthetic data, as an upper bound for comparison (§3.1, Appendix I, Table 5).
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.algorithms.afl_dw import AFLDW
from asyncfl_lite.algorithms.base import ALGORITHMS, About, ServerContext
from asyncfl_lite.algorithms.losses import multi_teacher_loss
from asyncfl_lite.algorithms.pool import ClassProxies, Pool, probe_inputs, probed_proportions
from asyncfl_lite.algorithms.synthesis import (
    GeneratedInputs,
    SoftPrompts,
    Synthesis,
    Synthesiser,
    teacher_weights,
)
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.models.compute import Minibatches, Optimiser
from asyncfl_lite.models.features import keeps_statistics, stored_statistics
from asyncfl_lite.models.vectors import all_finite
from asyncfl_lite.simulator.jobs import Update

ALPHA_ADV = 0.1
"""α_adv, the weight of the adversarial term in Eq. 4; α_target is 1 (Table 6, for every data set)."""
T_EST = 2
"""T_est, the number of a client's first uploads that are probed (Appendix B)."""
PROBES = 64
"""Number of random inputs with which an uploaded model is probed; the paper gives none."""
POOL_SIZE = 16_000
"""Largest number of synthetic inputs that are kept, the newest ones (the authors' code)."""
PROMPTS = 4
"""For text: number of soft prompt vectors, which take the generator's place (§3.2)."""
SNIPPETS = 1000
"""For text: number of texts, from the task's unlabelled set ``cross``, that take the place of the paper's snippets."""


class Teacher(NamedTuple):
    """One of the latest client models, with the ``(2, F)`` feature statistics φ̄ of its client's data, if used."""

    client: int
    x: Tensor
    buffers: Tensor | None
    features: Tensor | None


class MultiTeacher(AFLDW):
    """AFL-DW that replaces the damped part by distillation from the latest client models (FedRevive Eq. 3).

    ``x ← x + η ((1 - β) Δ + β Δ^KD)``. A subclass provides the inputs for distillation.

    Attributes:
        teachers: the latest client models, oldest first.
        proxies: clients' class proportions, estimated or true.
        pool: the labelled inputs for distillation.
    """

    moves_by_itself = True
    state_names = (*AFLDW.state_names, "teachers")
    state_parts: ClassVar[dict[str, tuple[str, ...]]] = {"proxies": ("sums", "counts")}
    """Parts of the server, with the names of their attributes that change from update to update."""
    weight_decay: ClassVar[float] = 0.0
    """Weight decay of Adam in distillation; the authors' code uses some for FedRevive, and none for DD-FedRevive."""
    kd_opt: Literal["adam", "sgd"] = "adam"
    """Optimiser of distillation: the authors' code's Adam, or the paper's plain step."""

    class Settings(AFLDW.Settings):
        """Options of distillation from several teachers."""

        num_teachers: int = Field(8, ge=1)
        """c, the number of latest client models that are kept as teachers."""
        k_kd: int = Field(10, ge=0)
        """Number of steps of one distillation; 0 gives AFL-DW."""
        kd_batch_size: int = Field(32, ge=1)
        """Number of inputs per teacher in each step."""
        kd_lr: float = Field(1e-4, ge=0)
        """Learning rate of distillation. Table 6 has 1e-4 for CIFAR-10 and FEMNIST, 3e-5 for CIFAR-100, 3e-4 for
        20NewsGroups. 0 switches distillation off."""

    settings: Settings

    def start(self, x0: Tensor, context: ServerContext | None = None, **options: Any) -> None:
        """Begin at version 0 without teachers."""
        super().start(x0, context, **options)
        self.teachers: list[Teacher] = []
        self.proxies, self.pool = self.begin()

    @abstractmethod
    def begin(self) -> tuple[ClassProxies, Pool]:
        """Return the store of clients' class proportions, and the pool of inputs, with which a run begins."""

    @property
    def spec(self) -> InputSpec:
        """Shape and kind of the task's inputs; a ConfigError if the context does not contain them."""
        if self.context.inputs is None:
            raise ConfigError(
                f"inputs: {type(self).__name__} needs the shape and range of inputs; put them in the context"
            )
        return self.context.inputs

    def on_receive(self, update: Update) -> bool:
        """Take the four steps of §2.2 after the arrival of an update, then the step of Eq. 3 (Algorithm 1, line 6)."""
        self.add_teacher(update)  # step 1
        self.renew_pool()  # steps 2 and 3
        return super().on_receive(update)  # Eq. 3, for which AFLDW calls distilled_update (step 4)

    def add_teacher(self, update: Update) -> None:
        """Make the client's model the newest of the c teachers, and learn its class proportions (step 1)."""
        teacher = Teacher(update.client, self.start_of(update) + update.delta, update.buffers, self.features_of(update))
        self.teachers = [*self.teachers, teacher][-self.settings.num_teachers :]
        self.learn_proportions(update, teacher)

    @property
    def temperature(self) -> float:
        """Temperature T of the softmax of teachers and student; 1 for every data set of Table 6."""
        return 1.0

    def features_of(self, update: Update) -> Tensor | None:
        """Return the ``(2, F)`` feature statistics φ̄ to keep for a client's model; None if they are not used."""
        return None

    def learn_proportions(self, update: Update, teacher: Teacher) -> None:
        """Record the client's true class proportions."""
        if update.label_counts is None:
            raise ConfigError("label_counts: true class proportions need every update to bring its class counts")
        self.proxies.add(update.client, update.label_counts.double().cpu() / update.label_counts.sum().cpu())

    def proportions(self) -> Tensor:
        """Return the ``(K, C)`` class proportions π̂ of the teachers' clients."""
        return self.proxies.of([teacher.client for teacher in self.teachers])

    def renew_pool(self) -> None:
        """Add new inputs to the pool when they are due; the default does nothing, since real data stay the same."""

    def distilled_update(self) -> Tensor | None:
        """Return Δ^KD, the change of the model in K_KD steps of distillation on the pool, or None (step 4).

        It is None if distillation is switched off, if the pool is empty, or if the change is not finite.
        """
        chosen, context, pool = self.settings, self.context, self.pool
        if pool.inputs is None or not (len(pool) and chosen.k_kd and chosen.kd_lr):
            return None
        size, steps = chosen.kd_batch_size, chosen.k_kd
        drawn = pool.draw(self.proportions(), steps * size, context.rng).to(self.x.device)  # all B_k, (K, steps · size)
        inputs = pool.inputs[drawn.flatten()]
        models = [(teacher.x, teacher.buffers) for teacher in self.teachers]
        outputs = context.outputs(models, inputs.unflatten(0, drawn.shape), one_for_all=False)  # x̃_k(r)
        by_step = torch.arange(len(inputs), device=self.x.device).view(len(models), steps, size).transpose(0, 1)
        student = context.distil(
            self.x,
            Minibatches(inputs, by_step.flatten(), [len(models) * size] * steps),  # the B_k of all teachers
            loss=partial(multi_teacher_loss, temperature=self.temperature),  # L_KD
            against=[torch.cat([context.class_logits(rows) for rows in outputs])],
            optimiser=Optimiser(self.kd_opt, chosen.kd_lr, self.weight_decay if self.kd_opt == "adam" else 0.0),
            predictions=lambda outputs, inputs: context.class_logits(outputs),
            buffers=None if self.buffers is None else self.buffers.clone(),
            train=True,  # the student's BatchNorm uses its batches' statistics, as in the authors' code
        )
        delta = student - self.x  # Δ^KD = x_s - x_t
        return delta if all_finite(delta) else None  # a teacher that overflows must not break the model

    def state(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` loads."""
        parts = {
            part: {name: getattr(getattr(self, part), name) for name in names}
            for part, names in self.state_parts.items()
        }
        return {**super().state(), "teachers": [tuple(teacher) for teacher in self.teachers], **parts}

    def restore(self, state: dict[str, Any]) -> None:
        """Load a saved state."""
        super().restore(state)
        self.teachers = [Teacher(*teacher) for teacher in state["teachers"]]
        for part, names in self.state_parts.items():
            for name in names:
                setattr(getattr(self, part), name, state[part][name])


@ALGORITHMS.register("fedrevive")
class FedRevive(MultiTeacher):
    """Stale updates are partly replaced by data-free distillation (FedRevive §2, Eqs. 3-4).

    The teachers are the latest 8 client models, and the data are synthetic.

    Every ``t_gen`` updates, a generator makes a batch that the teachers recognise as the requested classes, whose
    features look like real ones, and on which the teachers and the global model differ. The batch joins the pool. The
    staler an update, the more of it is replaced by ten steps of distillation on the pool.

    Attributes:
        synthesiser: the generator or the soft prompts, with their meta-learning.
    """

    about = About(
        title="FedRevive",
        paper="FedRevive, §2, Eqs. 3-4",
        family="distilling",
        models_stored="1 + num_teachers",
        also_stored="generator, pool of at most 16,000 inputs, class proxies",
        client_work="one forward pass over its samples for feature statistics, none with BatchNorm",
        colour="#cc78bc",
    )
    state_parts = {
        **MultiTeacher.state_parts,
        "pool": ("inputs", "labels"),
        "synthesiser": ("theta", "syntheses"),
    }
    weight_decay = 1e-5
    t_gen: ClassVar[int] = 10
    """T_gen, the number of updates between two syntheses (Table 6); the authors' code synthesises at every update."""
    synth_batch_size: ClassVar[int] = 64
    """Number of inputs that one synthesis adds to the pool (Table 6)."""

    class Settings(MultiTeacher.Settings):
        """Options of FedRevive; defaults are those of Tables 4 and 6 for CIFAR-10 and of the authors' code."""

        proxy: Literal["estimated", "true"] = "estimated"
        """Class proportions of clients: the paper's proxies from probes, or the true ones (its Appendix B ablation)."""
        t_probe: float = Field(0.8, gt=0)
        """Temperature of a probe's softmax."""
        k_synth: int = Field(2, ge=1)
        """K_synth, the number of gradient steps of one synthesis (§2.2, Table 6)."""
        generator_lr: float = Field(3e-3, ge=0)
        """Adam's learning rate on the generator, or on soft prompts, within a synthesis (Table 6, CIFAR-10)."""
        latent_lr: float = Field(1e-3, ge=0)
        """Adam's learning rate on the latents within a synthesis (Table 6, CIFAR-10)."""
        nz: int = Field(256, ge=1)
        """Length of a latent vector."""
        ngf: int = Field(128, ge=1)
        """Width of the generator."""
        alpha_feat: float = Field(0.003, ge=0)
        """α_feat, the weight in Eq. 4 of the distance from real features (Table 6, CIFAR-10). 0 spares clients the
        report of their feature statistics."""
        freeze_rounds: int = Field(50, ge=0)
        """Number of versions made without synthesis at the start; the authors' code for FEMNIST has 400. Until then,
        updates pass undamped; afterwards, an update without distillation is damped as in AFL-DW."""
        synthesis_only_rounds: int = Field(100, ge=0)
        """Last version at which updates are used without distillation; the authors' code for FEMNIST has 500."""
        adversarial_from: int = Field(11, ge=1)
        """Number, counted from 1, of the first synthesis with the adversarial term. In the authors' code, it equals
        ``synthesis_only_rounds``, and every update has a synthesis, so the term begins at version 149, and on FEMNIST
        at version 899. With a synthesis at every tenth update, the 11th is at version 150, and on FEMNIST the 51st is
        at version 900."""

    settings: Settings

    @property
    def client_reports(self) -> frozenset[str]:
        """Extra reports that clients must send: feature statistics, class counts, both or none."""
        wanted = {"features": self.settings.alpha_feat > 0, "label_counts": self.settings.proxy == "true"}
        return frozenset(name for name, needed in wanted.items() if needed)

    @property
    def frozen(self) -> bool:
        """Whether nothing is synthesised yet, because the version is below ``freeze_rounds``."""
        return self.version < self.settings.freeze_rounds

    def begin(self) -> tuple[ClassProxies, Pool]:
        """Make the synthesiser, with θ; return an empty store of clients' proportions π̂, and an empty pool D_KD."""
        chosen = self.settings
        self.synthesiser = Synthesiser(
            self._maker(), steps=chosen.k_synth, generator_lr=chosen.generator_lr, latent_lr=chosen.latent_lr
        )
        return ClassProxies(self.spec.num_classes, T_EST if chosen.proxy == "estimated" else 1), Pool(POOL_SIZE)

    def _maker(self) -> GeneratedInputs | SoftPrompts:
        context, seed = self.context, int(self.context.rng.integers(2**31))
        if self.spec.vocabulary is None:
            return GeneratedInputs(self.spec, self.settings.nz, self.settings.ngf, seed, like=self.x)
        snippets: Tensor | None = None  # random tokens, if the task has no texts for the server
        with suppress(ConfigError):
            snippets = context.unlabelled("cross", SNIPPETS)
        return SoftPrompts(self.spec, context.model, PROMPTS, seed, self.x, snippets)

    # Step 1: what a teacher's client is like

    def features_of(self, update: Update) -> Tensor | None:
        """Return φ̄ as the client reported it, since a model without BatchNorm keeps none, or else from its model."""
        if not self.settings.alpha_feat or update.features is not None:
            return update.features
        if update.buffers is not None and keeps_statistics(self.context.model):
            return stored_statistics(self.context.model, update.buffers)
        raise ConfigError("features: FedRevive with alpha_feat above 0 needs every update to bring its statistics")

    def learn_proportions(self, update: Update, teacher: Teacher) -> None:
        """Record the client's true class proportions, or estimate them, π̂, by probing its first uploads (§2.1)."""
        if self.settings.proxy == "true":
            super().learn_proportions(update, teacher)
        elif not self.proxies.complete(update.client):
            probes = probe_inputs(self.spec, PROBES, self.context.rng, like=self.x)
            logits = self.context.model.outputs(teacher.x, probes, teacher.buffers)
            logits = self.context.class_logits(logits)
            self.proxies.add(update.client, probed_proportions(logits, self.settings.t_probe))

    # Steps 2 and 3: synthesis, which adds to the pool and moves the generator

    def renew_pool(self) -> None:
        """Add a batch to the pool at every ``t_gen``-th update; ``synthesised`` trains (z, θ') and then moves θ."""
        if self.frozen or self.version % self.t_gen:
            return
        chosen, context, teachers = self.settings, self.context, self.teachers
        drawn = context.rng.choice(self.spec.num_classes, size=self.synth_batch_size)
        labels = torch.from_numpy(drawn).to(self.x.device)  # y_z
        late = self.synthesiser.syntheses + 1 >= chosen.adversarial_from
        made = context.compute(
            Synthesis(  # L_synth (Eq. 4) is synthesis_loss
                self.synthesiser,
                labels,
                self.synthesiser.maker.latents(labels, self.x, context.rng),  # z
                context.model,
                xs=[*(teacher.x for teacher in teachers), self.x],
                buffers=[*(teacher.buffers for teacher in teachers), self.buffers],
                stored=[teacher.features for teacher in teachers],
                weights=teacher_weights(self.proportions()).to(self.x),  # ω̂ (step 1)
                alpha_feat=chosen.alpha_feat,
                alpha_adv=ALPHA_ADV if late else 0.0,
                class_logits=context.class_logits,
            )
        )
        if made is not None:
            self.pool.add(made, labels)  # D_KD

    # Step 4: the revived update, after the warm-up of the authors' code

    def distilled_update(self) -> Tensor | None:
        """Return the distilled update Δ^KD; None up to the version ``synthesis_only_rounds``."""
        return super().distilled_update() if self.version > self.settings.synthesis_only_rounds else None

    def weight_of(self, update: Update) -> float:
        """Return the damping β of an update, or 0 while nothing is synthesised yet."""
        return 0.0 if self.frozen else super().weight_of(update)


@ALGORITHMS.register("dd_fedrevive")
class DDFedRevive(MultiTeacher):
    """FedRevive with real data on the server and true class proportions (FedRevive §3.1).

    Half of every update comes from its client, and half from distillation of the latest 8 client models on data that no
    client has.
    """

    about = About(
        title="DD-FedRevive",
        paper="FedRevive, §3.1, Eq. 3, Table 5",
        family="distilling",
        models_stored="1 + num_teachers",
        also_stored="the labelled set, class proportions",
        client_work="counts its samples of each class",
        colour="#fbafe4",
    )
    client_reports = frozenset({"label_counts"})

    class Settings(MultiTeacher.Settings):
        """Options of DD-FedRevive; defaults are Table 5's values for CIFAR-10."""

        beta_family: Literal["cosine", "linear", "exponential", "stepwise", "constant"] = "constant"
        """Schedule β, as in AFL-DW; the paper's is constant, with ``beta_constant`` 0.5 (Table 5)."""
        kd_lr: float = Field(3e-4, ge=0)
        """Learning rate of distillation. Table 5 has 3e-4 for CIFAR-10 and FEMNIST, 1e-4 for CIFAR-100 and
        20NewsGroups."""
        kd_temperature: float = Field(2.0, gt=0)
        """Temperature T of the softmax of teachers and student; 2 for every data set of Table 5."""
        auxiliary: float = Field(1 / 7, gt=0, lt=1)
        """Share of all training samples that the server keeps. The default is a sixth of the clients' samples, the
        16.7% of §3.1; the authors' code keeps 5,000 images of CIFAR-10 beside the clients' 37,500."""

    settings: Settings

    @property
    def temperature(self) -> float:
        """Temperature T of the softmax of teachers and student."""
        return self.settings.kd_temperature

    @property
    def held_out(self) -> float:
        """Share of all training samples that the server keeps."""
        return self.settings.auxiliary

    def begin(self) -> tuple[ClassProxies, Pool]:
        """Return an empty store of clients' true class proportions, and the server's labelled set as the pool."""
        inputs, labels = self.labelled
        pool = Pool(len(labels))
        pool.add(inputs, labels)
        return ClassProxies(self.spec.num_classes, uploads=1), pool

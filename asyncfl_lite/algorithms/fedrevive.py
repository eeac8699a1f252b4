"""FedRevive: part of a stale update is replaced by distillation from the latest client models on synthetic data.

"Reviving Stale Updates: Data-Free Knowledge Distillation for Asynchronous Federated Learning", §2, Eqs. 3 and 4,
Appendices B and I. Details that the paper leaves open (λ, probes, latents, s_max, warm-up) are options, whose defaults
are the values in the authors' code, mostly those for CIFAR-10. The synthetic data come from
:mod:`asyncfl_lite.algorithms.synthesis`.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.algorithms.about import About
from asyncfl_lite.algorithms.base import ALGORITHMS
from asyncfl_lite.algorithms.multi_teacher import MultiTeacher, Teacher
from asyncfl_lite.algorithms.synthesis import (
    ClassProxies,
    GeneratedInputs,
    InputMaker,
    Pool,
    SoftPrompts,
    Synthesis,
    Synthesiser,
    Terms,
    probe_inputs,
    probed_proportions,
    teacher_weights,
)
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.models.features import keeps_statistics, stored_statistics
from asyncfl_lite.simulator.jobs import Update


@ALGORITHMS.register("fedrevive")
class FedRevive(MultiTeacher):
    """Stale updates are partly replaced by data-free distillation (FedRevive §2, Eqs. 3-4).

    The teachers are the latest 8 client models, and the data are synthetic.

    Every ``t_gen`` updates, a generator makes a batch that the teachers recognise as the requested classes, whose
    features look like real ones, and on which the teachers and the global model differ. The batch joins the pool. The
    staler an update, the more of it is replaced by ten steps of distillation on the pool.

    Attributes:
        synthesiser: the generator or the soft prompts, with their meta-learning.

    >>> from asyncfl_lite import Config, run
    >>> early = {"freeze_rounds": 1, "synthesis_only_rounds": 2, "k_kd": 1}
    >>> result = run(Config(task="digits", algorithm="fedrevive", rounds=4, settings=early))
    >>> result.summary["versions"], result.summary["client_updates"]
    (4, 4)
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
    state_parts = ("proxies", "pool", "synthesiser")

    class Settings(MultiTeacher.Settings):
        """Options of FedRevive; defaults are those of Tables 4 and 6 for CIFAR-10 and of the authors' code."""

        proxy: Literal["estimated", "true"] = "estimated"
        """Class proportions of clients: the paper's proxies from probes, or the true ones (its Appendix B ablation)."""
        t_est: int = Field(2, ge=1)
        """Number of a client's first uploads that are probed."""
        t_probe: float = Field(0.8, gt=0)
        """Temperature of a probe's softmax."""
        probes: int = Field(64, ge=1)
        """Number of random inputs with which an uploaded model is probed; the paper gives none."""
        t_gen: int = Field(10, ge=1)
        """Number of updates between two syntheses; the authors' code synthesises at every update."""
        k_synth: int = Field(2, ge=1)
        """K_synth, the number of gradient steps of one synthesis (§2.2, Table 6)."""
        synth_batch_size: int = Field(64, ge=2)
        """Number of inputs that one synthesis adds to the pool (Table 6)."""
        generator_lr: float = Field(3e-3, ge=0)
        """Adam's learning rate on the generator, or on soft prompts, within a synthesis (Table 6, CIFAR-10)."""
        latent_lr: float = Field(1e-3, ge=0)
        """Adam's learning rate on the latents within a synthesis (Table 6, CIFAR-10)."""
        nz: int = Field(256, ge=1)
        """Length of a latent vector."""
        ngf: int = Field(128, ge=1)
        """Width of the generator."""
        class_weight: float = Field(0.2, ge=0)
        """Weight of a class's embedding relative to the noise."""
        prompt_length: int = Field(4, ge=1)
        """For text: number of soft prompt vectors, which take the generator's place."""
        snippets: str | None = None
        """For text: the task's unlabelled set from which synthesis starts; random tokens if none is named."""
        snippet_count: int = Field(1000, ge=1)
        """For text: number of snippets drawn from that set at the start of a run."""
        alpha_target: float = Field(1.0, ge=0)
        """α_target, the weight in Eq. 4 of the target term, which favours inputs that teachers recognise as the
        requested classes."""
        alpha_feat: float = Field(0.003, ge=0)
        """α_feat, the weight in Eq. 4 of the distance from real features (Table 6, CIFAR-10). 0 spares clients the
        report of their feature statistics."""
        alpha_adv: float = Field(0.1, ge=0)
        """α_adv, the weight in Eq. 4 of the adversarial term, which favours inputs on which the teachers and the global
        model differ."""
        feat_norm: Literal["l2", "l2sq"] = "l2"
        """Norm of the feature term: L2 norms, as in the authors' code, or the squared norm, as in the paper."""
        label_draw: Literal["uniform", "proxy"] = "uniform"
        """Distribution of the classes to synthesise: uniform, or the teachers' mean class proportions."""
        meta: Literal["sgd", "adam"] = "sgd"
        """Meta-update: the paper's Reptile step, or the authors' code's Adam."""
        meta_rate: float = Field(0.2, ge=0, le=1)
        """λ of the Reptile step; the paper gives no value."""
        pool_size: int = Field(16_000, ge=1)
        """Largest number of made-up inputs that are kept, the newest ones; the authors' code has 16,000."""
        freeze_rounds: int = Field(50, ge=0)
        """Number of versions made without synthesis at the start; the authors' code for FEMNIST has 400."""
        synthesis_only_rounds: int = Field(100, ge=0)
        """Last version at which updates are used without distillation; the authors' code for FEMNIST has 500."""
        adversarial_from: int = Field(11, ge=1)
        """Number, counted from 1, of the first synthesis with the adversarial term. In the authors' code, it equals
        ``synthesis_only_rounds``, and every update has a synthesis, so the term begins at version 149, and on FEMNIST
        at version 899. With a synthesis at every tenth update, the 11th is at version 150, and on FEMNIST the 51st is
        at version 900."""
        warmup_mode: Literal["authors", "damp", "pass"] = "authors"
        """Treatment of an update without distillation: as with β = 0 during ``freeze_rounds`` and as in AFL-DW
        afterwards; always as in AFL-DW; or always as with β = 0."""

    settings: Settings

    @property
    def client_reports(self) -> frozenset[str]:
        """Extra reports that clients must send: feature statistics, class counts, both or none."""
        wanted = {"features": self.settings.alpha_feat > 0, "label_counts": self.settings.proxy == "true"}
        return frozenset(name for name, needed in wanted.items() if needed)

    @property
    def warming_up(self) -> bool:
        """Whether nothing is distilled yet, because the version is at most ``synthesis_only_rounds``."""
        return self.version <= self.settings.synthesis_only_rounds

    @property
    def frozen(self) -> bool:
        """Whether nothing is synthesised yet, because the version is below ``freeze_rounds``."""
        return self.version < self.settings.freeze_rounds

    def begin(self) -> tuple[ClassProxies, Pool]:
        """Make the synthesiser; return an empty store of clients' class proportions, and an empty pool."""
        chosen, of_text = self.settings, self.spec.vocabulary is not None
        self.synthesiser = Synthesiser(
            self._maker(),
            steps=chosen.k_synth,
            generator_lr=chosen.generator_lr,
            latent_lr=chosen.latent_lr,
            meta=chosen.meta,
            meta_rate=chosen.meta_rate,
            # the authors' code has one Adam for the generator's meta-update and another one for the prompts'
            meta_lr=chosen.generator_lr * (chosen.k_synth if of_text else 1),
            meta_eps=1e-8 if of_text else 0.0,
        )
        uploads = chosen.t_est if chosen.proxy == "estimated" else 1
        return ClassProxies(self.spec.num_classes, uploads), Pool(chosen.pool_size)

    def _maker(self) -> InputMaker:
        """Return the maker of synthetic inputs: soft prompts for text, and a generator network for all other inputs."""
        chosen, context, seed = self.settings, self.context, int(self.context.rng.integers(2**31))
        if self.spec.vocabulary is None:
            return GeneratedInputs(self.spec, chosen.nz, chosen.ngf, chosen.class_weight, seed, like=self.x)
        snippets = None if chosen.snippets is None else context.unlabelled(chosen.snippets, chosen.snippet_count)
        return SoftPrompts(self.spec, context.model, chosen.prompt_length, seed, self.x, snippets)

    def weight_of(self, update: Update) -> float:
        """Return the damping β of an update, or 0 while the warm-up lets updates through unchanged."""
        passes = {"authors": self.frozen, "damp": False, "pass": self.warming_up}
        return 0.0 if passes[self.settings.warmup_mode] else super().weight_of(update)

    def features_of(self, update: Update) -> Tensor | None:
        """Return the feature statistics that the client reported, or else its model's running statistics."""
        if not self.settings.alpha_feat or update.features is not None:
            return update.features
        if update.buffers is not None and keeps_statistics(self.context.model):
            return stored_statistics(self.context.model, update.buffers)
        raise ConfigError("features: FedRevive with alpha_feat above 0 needs every update to bring its statistics")

    def learn_proportions(self, update: Update, teacher: Teacher) -> None:
        """Record the client's true class proportions, or estimate them by probing its first uploaded models."""
        if self.settings.proxy == "true":
            super().learn_proportions(update, teacher)
        elif not self.proxies.complete(update.client):
            probes = probe_inputs(self.spec, self.settings.probes, self.context.rng, like=self.x)
            logits = self.context.model.outputs(teacher.x, probes, teacher.buffers)
            logits = self.context.class_logits(logits)
            self.proxies.add(update.client, probed_proportions(logits, self.settings.t_probe))

    def renew_pool(self) -> None:
        """Synthesise a batch at every ``t_gen``-th update and add it to the pool (§2.2, steps 2 and 3)."""
        if self.frozen or self.version % self.settings.t_gen:
            return
        proportions = self.proportions()
        labels, weights = self._labels(proportions).to(self.x.device), teacher_weights(proportions).to(self.x)
        chosen, teachers, context = self.settings, self.teachers, self.context
        begun = self.synthesiser.syntheses + 1
        made = context.compute(
            Synthesis(
                self.synthesiser,
                labels,
                self.synthesiser.maker.latents(labels, self.x, context.rng),
                context.model,
                xs=[*(teacher.x for teacher in teachers), self.x],
                buffers=[*(teacher.buffers for teacher in teachers), self.buffers],
                stored=[teacher.features for teacher in teachers],
                weights=weights,
                terms=Terms(
                    chosen.alpha_target,
                    chosen.alpha_feat,
                    chosen.alpha_adv if begun >= chosen.adversarial_from else 0.0,
                    chosen.feat_norm,
                ),
                class_logits=context.class_logits,
                seen=self.seen_as("synthesis") if chosen.augment else None,
            )
        )
        if made is not None:
            self.pool.add(made, labels)

    def _labels(self, proportions: Tensor) -> Tensor:
        """Draw the ``(B,)`` classes to synthesise."""
        uniform = self.settings.label_draw == "uniform"
        shares = None if uniform else (proportions.mean(0) / proportions.mean(0).sum()).numpy()
        return torch.from_numpy(
            self.context.rng.choice(self.spec.num_classes, size=self.settings.synth_batch_size, p=shares)
        )

    def distilled_update(self) -> Tensor | None:
        """Return the distilled update Δ^KD; None during the warm-up."""
        return None if self.warming_up else super().distilled_update()

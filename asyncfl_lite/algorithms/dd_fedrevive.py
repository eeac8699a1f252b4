"""DD-FedRevive: FedRevive that distils on real instead of synthetic data, as an upper bound for comparison.

FedRevive (see :mod:`asyncfl_lite.algorithms.fedrevive`), §3.1, Appendix I, Table 5.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from asyncfl_lite.algorithms.about import About
from asyncfl_lite.algorithms.base import ALGORITHMS
from asyncfl_lite.algorithms.multi_teacher import MultiTeacher
from asyncfl_lite.algorithms.synthesis import ClassProxies, Pool


@ALGORITHMS.register("dd_fedrevive")
class DDFedRevive(MultiTeacher):
    """FedRevive with real data on the server and true class proportions (FedRevive §3.1).

    Half of every update comes from its client, and half from distillation of the latest 8 client models on data that no
    client has.

    >>> from asyncfl_lite import Config, run
    >>> result = run(Config(task="digits", algorithm="dd_fedrevive", rounds=3, settings={"k_kd": 1}))
    >>> result.summary["versions"], result.summary["client_updates"]
    (3, 3)
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
    revision = 2  # a seventh of the samples, no weight decay

    class Settings(MultiTeacher.Settings):
        """Options of DD-FedRevive; defaults are Table 5's values for CIFAR-10."""

        beta_family: Literal["cosine", "linear", "exponential", "stepwise", "constant"] = "constant"
        """Schedule β, as in AFL-DW; the paper's is constant, with ``beta_constant`` 0.5 (Table 5)."""
        kd_lr: float = Field(3e-4, ge=0)
        """Learning rate of distillation. Table 5 has 3e-4 for CIFAR-10 and FEMNIST, 1e-4 for CIFAR-100 and
        20NewsGroups."""
        kd_temperature: float = Field(2.0, gt=0)
        """Temperature T of the softmax of teachers and student; 2 for every data set of Table 5."""
        kd_weight_decay: float = Field(0.0, ge=0)
        """Adam's weight decay; the authors' code uses some for FedRevive, and none for this method."""
        auxiliary: float = Field(1 / 7, gt=0, lt=1)
        """Share of all training samples that the server keeps. The default is a sixth of the clients' samples, the
        16.7% of §3.1; the authors' code keeps 5,000 images of CIFAR-10 beside the clients' 37,500."""

    settings: Settings

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

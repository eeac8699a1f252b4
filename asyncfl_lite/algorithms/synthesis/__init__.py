"""FedRevive's synthetic data: clients' class proportions, a generator or soft prompts, losses, and a sample pool."""

from asyncfl_lite.algorithms.synthesis.augment import cropped_and_mirrored
from asyncfl_lite.algorithms.synthesis.generators import GeneratedInputs, ImageGenerator, VectorGenerator
from asyncfl_lite.algorithms.synthesis.losses import (
    TeacherAnswers,
    adversarial_loss,
    feature_loss,
    synthesis_loss,
    target_loss,
)
from asyncfl_lite.algorithms.synthesis.pool import Pool
from asyncfl_lite.algorithms.synthesis.prompts import SoftPrompts
from asyncfl_lite.algorithms.synthesis.proxies import ClassProxies, probe_inputs, probed_proportions, teacher_weights
from asyncfl_lite.algorithms.synthesis.request import Synthesis, Terms
from asyncfl_lite.algorithms.synthesis.synthesiser import InputMaker, Synthesiser

__all__ = [
    "ClassProxies",
    "GeneratedInputs",
    "ImageGenerator",
    "InputMaker",
    "Pool",
    "SoftPrompts",
    "Synthesis",
    "Synthesiser",
    "TeacherAnswers",
    "Terms",
    "VectorGenerator",
    "adversarial_loss",
    "cropped_and_mirrored",
    "feature_loss",
    "probe_inputs",
    "probed_proportions",
    "synthesis_loss",
    "target_loss",
    "teacher_weights",
]

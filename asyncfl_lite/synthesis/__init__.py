"""FedRevive's made-up data: class proxies, generator or soft prompts, synthesis losses, pool of samples."""

from asyncfl_lite.synthesis.augment import cropped_and_mirrored
from asyncfl_lite.synthesis.generators import GeneratedInputs, ImageGenerator, VectorGenerator
from asyncfl_lite.synthesis.losses import (
    TeacherAnswers,
    adversarial_loss,
    feature_loss,
    synthesis_loss,
    target_loss,
)
from asyncfl_lite.synthesis.pool import Pool
from asyncfl_lite.synthesis.prompts import SoftPrompts
from asyncfl_lite.synthesis.proxies import ClassProxies, probe_inputs, probed_proportions, teacher_weights
from asyncfl_lite.synthesis.synthesiser import InputMaker, Synthesiser

__all__ = [
    "ClassProxies",
    "GeneratedInputs",
    "ImageGenerator",
    "InputMaker",
    "Pool",
    "SoftPrompts",
    "Synthesiser",
    "TeacherAnswers",
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

"""Models by name; importing this package registers them all."""

from asyncfl_lite.models import causal_lm, lstm, transformers, video
from asyncfl_lite.models.base import MODELS, ModelSpec
from asyncfl_lite.models.resnet import ResNet
from asyncfl_lite.models.text import TextTransformer
from asyncfl_lite.models.vision import CNN, MLP

__all__ = [
    "CNN",
    "MLP",
    "MODELS",
    "ModelSpec",
    "ResNet",
    "TextTransformer",
    "causal_lm",
    "lstm",
    "transformers",
    "video",
]

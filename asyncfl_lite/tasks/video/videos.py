"""Video: clips of human actions, read from folders of video files and their authors' split files.

KUIPER (§4) distils a model on Kinetics and fine-tunes it on HMDB51 (8 frames per clip) and UCF101 (32 frames). PyAV
decodes the files, once, into the cache folder; clips that cannot be read are left out, with a warning. The
stand-in for all three data sets is in :mod:`asyncfl_lite.tasks.video.motion`.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from asyncfl_lite.base.data_folders import data_file
from asyncfl_lite.base.errors import DataError, ResultError, needs
from asyncfl_lite.base.files import CACHE, DAMAGE, cache_root, reading, text_of, write_atomically
from asyncfl_lite.tasks.images.base import digits_images
from asyncfl_lite.tasks.images.unlabelled import resize, strokes
from asyncfl_lite.tasks.task import TASKS, FolderSource, Task, UnlabelledSet
from asyncfl_lite.tasks.video.motion import any_way, replayed

KINETICS_MEAN, KINETICS_STD = (0.43216, 0.394666, 0.37645), (0.22803, 0.22145, 0.216989)
"""Mean and standard deviation of red, green and blue in Kinetics-400, in [0, 1], as torchvision's video models use
them."""


class Clip(NamedTuple):
    """A video: its path relative to the data set's folder, and the name of its class."""

    path: str
    label: str


def decode_clip(path: Path, frames: int, side: int) -> np.ndarray:
    """Return ``frames`` evenly spaced frames of a video, the middle square of each.

    The shorter side is scaled to ``side``. If a video has fewer frames, some of them are repeated.

    Returns:
        ``(3, T, side, side)`` uint8 frames; colours are in the order red, green, blue.
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
    clips: Sequence[Clip], classes: Sequence[str], videos: Path, name: str, frames: int, side: int
) -> tuple[Tensor, Tensor, int]:
    """Return the clips that can be read, from the cache folder if they were decoded before.

    The cache has a file for each combination of a folder, a list of clips, their sizes, ``frames`` and ``side``.

    Args:
        videos: the folder to which the clips' paths are relative.
        name: name of the clips, for the progress bar and the file.

    Returns:
        ``(n, 3, T, side, side)`` normalised clips, their ``(n,)`` int64 labels, and how many clips were skipped.
    """
    if not clips:
        raise DataError(f"{videos}: the split files must name clips for {name}, they name none")
    sizes = [(videos / clip.path).stat().st_size if (videos / clip.path).is_file() else -1 for clip in clips]
    listed = json.dumps([str(videos.resolve()), [clip.path for clip in clips], sizes])
    digest = hashlib.sha256(listed.encode()).hexdigest()[:12]
    path = cache_root() / "clips" / f"{name}-{frames}x{side}-{digest}.npz"
    try:
        with np.load(path) as file:  # a zip file, whose checksums NumPy checks
            decoded, skipped = file["clips"], json.loads(str(file["skipped"]))
    except DAMAGE:
        decoded, skipped = _decode_all(clips, videos, name, frames, side)
        try:
            write_atomically(path, lambda file: np.savez(file, clips=decoded, skipped=json.dumps(skipped)))
        except ResultError as error:
            warnings.warn(f"{error}; clips are decoded every time until {CACHE} names another folder", stacklevel=3)
    kept = torch.tensor([index for index, clip in enumerate(clips) if clip.path not in skipped])
    if not len(kept):
        why = f"{clips[0].path}: {skipped[clips[0].path]}"
        raise DataError(f"{videos}: none of the {len(clips)} clips for {name} can be read; {why}")
    made = torch.empty(len(kept), *decoded.shape[1:])
    for part, some in zip(made.split(64), kept.split(64), strict=True):  # all at once, it takes three times the memory
        part.copy_(normalised(torch.from_numpy(decoded[some.numpy()]).float() / 255))
    return made, torch.tensor([classes.index(clip.label) for clip in clips])[kept], len(skipped)


def _decode_all(
    clips: Sequence[Clip], videos: Path, name: str, frames: int, side: int
) -> tuple[np.ndarray, dict[str, str]]:
    """Return the ``(n, 3, T, side, side)`` clips, zeros where one cannot be read, and path -> reason for these."""
    _pyav()
    decoded, skipped = np.zeros((len(clips), 3, frames, side, side), np.uint8), dict[str, str]()

    def decode(index: int) -> None:
        try:
            decoded[index] = decode_clip(videos / clips[index].path, frames, side)
        except DataError as error:
            skipped[clips[index].path] = str(error)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(tqdm(pool.map(decode, range(len(clips))), f"{name}: decoding, once", len(clips), unit="clip"))
    if skipped:
        path, why = min(skipped.items())
        warnings.warn(f"{videos}: {len(skipped)} of {len(clips)} clips skipped, such as {path}: {why}", stacklevel=4)
    return decoded, skipped


def normalised(clips: Tensor) -> Tensor:
    """Normalise ``(…, 3, T, side, side)`` clips in [0, 1] by Kinetics' mean and standard deviation."""
    mean, std = (torch.tensor(values).view(3, 1, 1, 1) for values in (KINETICS_MEAN, KINETICS_STD))
    return (clips - mean) / std


class VideoFolder(FolderSource):
    """Abstract base of data sets of video files, read with the split files that their authors publish.

    Nothing is downloaded: the videos come in archives of up to hundreds of GB that need other programs. Decoded clips
    are kept in the cache folder, so that only the first load takes long.
    """

    title: ClassVar[str]
    paper: ClassVar[str]
    part: ClassVar[str] = "split 1"
    """Description of the part of the data set that is used; KUIPER does not say which of the three splits it takes."""

    frames: int = Field(8, ge=1)
    """Number of frames in a clip, evenly spaced over the video."""
    side: int = Field(112, ge=8)
    """Size of a frame: the shorter side is scaled to it, and the middle square is kept."""

    @abstractmethod
    def listing(self, place: Path) -> list[list[Clip]]:
        """Return the training and the test clips of the split files."""

    def load(self) -> Task:
        """Load the task; the first time, clips are decoded, with a progress bar."""
        place = self.home()
        lists = self.listing(place)
        names, tested = (sorted({clip.label for clip in clips}) for clips in lists)
        if unknown := [name for name in tested if name not in names]:
            raise DataError(f"{place}: no training clip is of class {unknown[0]!r}, as test clips are")
        train, test = (
            read_clips(clips, names, place, f"{self.name}-{part}", self.frames, self.side)
            for clips, part in zip(lists, ("train", "test"), strict=True)
        )
        skipped = f"{train[2]} training and {test[2]} test clips skipped as unreadable"
        return Task(
            self.name,
            *train[:2],
            *test[:2],
            num_classes=len(names),
            source=f"{self.paper}; {self.part}; {self.frames} frames of {self.side}×{self.side}; {skipped}",
            unlabelled=self._unlabelled(train[0]),
            class_names=tuple(names),
            licence="research use; the videos belong to those who published them",
        )

    def _unlabelled(self, clips: Tensor) -> dict[str, UnlabelledSet]:
        """Return unlabelled sets: moving digits, training clips altered as if recorded again, and moving strokes."""

        def coloured(grey: Tensor) -> Tensor:
            sized = functional.interpolate(grey, size=(self.frames, self.side, self.side), mode="nearest")
            return normalised(sized.expand(-1, 3, -1, -1, -1))

        half = self.side // 2
        return {
            "cross": lambda n, rng: coloured(any_way(resize(digits_images()[0], half), n, self.frames, rng)),
            "natural": lambda n, rng: replayed(clips, n, rng),
            "synthetic": lambda n, rng: coloured(any_way(strokes(half, n, rng), n, self.frames, rng)),
        }


@TASKS.register("ucf101")
class UCF101(VideoFolder):
    """UCF101: 13,320 clips of 101 human actions, with the first of three splits of ucfTrainTestlist."""

    title = "UCF101"
    places = ("UCF101", "ucf101")
    paper = "UCF101 (Soomro, Zamir and Shah, 2012)"
    how = "get UCF101.rar and UCF101TrainTestSplits-RecognitionTask.zip from crcv.ucf.edu and unpack both there"

    def listing(self, place: Path) -> list[list[Clip]]:
        """Read trainlist01.txt and testlist01.txt; videos lie in UCF-101/<class>/."""
        splits, videos = inside(place, "ucfTrainTestlist"), inside(place, "UCF-101").relative_to(place)
        lists = []
        for kind in ("train", "test"):
            rows = [line.split()[0] for line in lines_of(data_file(splits, f"{kind}list01.txt", how=self.how))]
            lists.append([Clip(str(videos / row), row.split("/")[0]) for row in rows])
        return lists


@TASKS.register("hmdb51")
class HMDB51(VideoFolder):
    """HMDB51: 6,766 clips of 51 human actions (3,570 training, 1,530 test in the first split)."""

    title = "HMDB51"
    places = ("HMDB51", "hmdb51")
    paper = "HMDB51 (Kuehne, Jhuang, Garrote, Poggio and Serre, 2011)"
    how = "get hmdb51_org.rar and test_train_splits.rar from serre-lab.clps.brown.edu and unpack both there"

    def listing(self, place: Path) -> list[list[Clip]]:
        """Read the files <class>_test_split1.txt, which mark each clip 1 (training), 2 (testing) or 0 (neither)."""
        splits = inside(inside(place, "test_train_splits"), "testTrainMulti_7030_splits")
        files = sorted(splits.glob("*_test_split1.txt"))
        if not files:
            raise DataError(f"folder: looked in {splits} for <class>_test_split1.txt, which is not there; {self.how}")
        videos = inside(place, "hmdb51_org").relative_to(place)
        marked: dict[str, list[Clip]] = {"0": [], "1": [], "2": []}
        for path in files:
            name = path.name.removesuffix("_test_split1.txt")
            for line in lines_of(path):
                video, _, mark = line.strip().rpartition(" ")
                if mark not in marked:
                    raise DataError(f"{path}: a line must end in 0, 1 or 2, got {line!r}")
                marked[mark].append(Clip(str(videos / name / video.strip()), name))
        return [marked["1"], marked["2"]]


@TASKS.register("kinetics")
class Kinetics(VideoFolder):
    """Kinetics-400: 10-second clips of 400 human actions, from video files and csv files."""

    title = "Kinetics-400"
    places = ("kinetics", "kinetics400", "k400", "Kinetics")
    paper = "Kinetics (Kay et al., 2017)"
    part = "training and validation set"
    how = "get its train and val sets with their csv files from the CVD Foundation's copy, into train/ and val/"

    def listing(self, place: Path) -> list[list[Clip]]:
        """Read train.csv and val.csv; videos lie in train/ and val/, with or without a folder for each class.

        Many of the videos that the files list are no longer available; these are skipped like unreadable ones.
        """
        lists = []
        columns = {"label": str, "youtube_id": str, "time_start": float, "time_end": float}
        for kind in ("train", "val"):
            path, clips = data_file(inside(place, "annotations"), f"{kind}.csv", how=self.how), list[Clip]()
            with reading(path, f"a table with columns {','.join(columns)}"):
                table = pd.read_csv(path, usecols=list(columns), dtype=columns, na_filter=False)
                table = table.astype({"time_start": int, "time_end": int})
            for row in table.itertuples():
                video = f"{row.youtube_id}_{row.time_start:06d}_{row.time_end:06d}.mp4"  # as Kinetics' tools name it
                folder = inside(place / kind, row.label, row.label.replace(" ", "_")).relative_to(place)
                clips.append(Clip(str(folder / video), row.label))
            lists.append(clips)
        return lists


def inside(place: Path, *names: str) -> Path:
    """Return the first of the folders ``names`` that exists in ``place``; if none does, ``place`` itself."""
    return next((place / name for name in names if (place / name).is_dir()), place)


def lines_of(path: Path) -> list[str]:
    """Return the non-empty lines of a text file."""
    lines = [line for line in text_of(path).splitlines() if line.strip()]
    if not lines:
        raise DataError(f"{path}: must have at least one line, has none")
    return lines

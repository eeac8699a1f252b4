"""Video: clips of human actions, read from folders of video files and their authors' split files.

KUIPER (§4) distils a model on Kinetics and fine-tunes it on HMDB51 (8 frames per clip) and UCF101 (32 frames). The
stand-in for all three is in :mod:`asyncfl_lite.tasks.video.motion`.
"""

from __future__ import annotations

import csv
import re
from abc import abstractmethod
from collections import Counter
from pathlib import Path
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from asyncfl_lite.base.errors import DataError
from asyncfl_lite.base.files import at_home, data_file, data_folder, data_places, reading, text_of
from asyncfl_lite.tasks.images.packaged import digits_images
from asyncfl_lite.tasks.images.unlabelled import resize
from asyncfl_lite.tasks.task import TASKS, Task, TaskSource, UnlabelledSet
from asyncfl_lite.tasks.video.clips import DECODED, Clip, normalised, read_clips
from asyncfl_lite.tasks.video.motion import MovingDigits, any_way, replayed, strokes_moving

__all__ = ["HMDB51", "UCF101", "Kinetics", "MovingDigits"]


class VideoFolder(TaskSource):
    """Abstract base of data sets of video files, read with the split files that their authors publish.

    Nothing is downloaded: the videos come in archives of up to hundreds of GB that need other programs. Decoded clips
    are kept on disk, so that only the first load takes long.
    """

    title: ClassVar[str]
    dataset: ClassVar[str]
    folders: ClassVar[tuple[str, ...]]
    paper: ClassVar[str]
    how: ClassVar[str]

    folder: str | None = None
    """Folder of data sets, or the data set's own folder."""
    cache: str | None = None
    """Folder for decoded clips; None for the data set's folder."""
    frames: int = Field(8, ge=1)
    """Number of frames in a clip, evenly spaced over the video."""
    side: int = Field(112, ge=8)
    """Size of a frame: the shorter side is scaled to it, and the middle square is kept."""
    precision: Literal["float32", "float16"] = "float32"
    """Precision of the clips in memory; resnet3d computes in its weights' precision either way."""
    clips_per_class: int | None = Field(None, ge=1)
    """Number of clips of each class, the first ones in the split file; None for all."""

    def files(self) -> list[Path]:
        """Return the files in the data set's folder, if it exists, leaving out cached decoded clips."""
        places = [path for place in data_places(self.folder, *self.folders) for path in place.iterdir()]
        return [path for path in places if not re.fullmatch(DECODED, path.name)]

    @abstractmethod
    def listing(self, place: Path) -> tuple[list[str], list[Clip], list[Clip]]:
        """Return the classes' names, and the training and test clips of the split files.

        Raises:
            DataError: when a split file is missing or has another format.
        """

    def load(self) -> Task:
        """Load the task; the first time, clips are decoded, with a progress bar."""
        place = data_folder(self.folder, *self.folders, how=self.how)
        names, *lists = self.listing(place)
        cache = place if self.cache is None else at_home(self.cache)
        dtype = getattr(torch, self.precision)
        train, test = (
            read_clips(first_of_each(clips, self.clips_per_class), place, cache, name, self.frames, self.side, dtype)
            for clips, name in zip(lists, (f"{self.dataset}-train", f"{self.dataset}-test"), strict=True)
        )
        skipped = f"{len(train.skipped)} training and {len(test.skipped)} test clips skipped as unreadable"
        return Task(
            name=self.dataset,
            inputs=train.clips,
            labels=train.labels,
            test_inputs=test.clips,
            test_labels=test.labels,
            num_classes=len(names),
            source=f"{self.paper}; {self.part}; {self.frames} frames of {self.side}×{self.side}; {skipped}",
            unlabelled=self._unlabelled(train.clips),
            class_names=tuple(names),
            licence="research use; the videos belong to those who published them",
        )

    @property
    def part(self) -> str:
        """Description of the part of the data set that is used."""
        return "training and validation set"

    def _unlabelled(self, clips: Tensor) -> dict[str, UnlabelledSet]:
        """Return unlabelled sets: moving digits, training clips altered as if recorded again, and moving strokes."""

        def coloured(grey: Tensor) -> Tensor:
            sized = functional.interpolate(grey, size=(self.frames, self.side, self.side), mode="nearest")
            return normalised(sized.expand(-1, 3, -1, -1, -1))

        half = self.side // 2
        return {
            "cross": lambda n, rng: coloured(any_way(resize(digits_images()[0], half), n, self.frames, rng)),
            "natural": lambda n, rng: replayed(clips, n, rng),
            "synthetic": lambda n, rng: coloured(strokes_moving(half, n, self.frames, rng)),
        }


class SplitVideoFolder(VideoFolder):
    """Abstract base of video data sets with three official splits."""

    split: Literal[1, 2, 3] = 1
    """Number of the split into training and test clips, one of the authors' three."""

    @property
    def part(self) -> str:
        """Description of the part of the data set that is used."""
        return f"split {self.split}"


@TASKS.register("ucf101")
class UCF101(SplitVideoFolder):
    """UCF101: 13,320 clips of 101 human actions, with the splits of ucfTrainTestlist.

    >>> from asyncfl_lite import Config
    >>> config = Config(task="ucf101", task_settings={"frames": 8})  # the files are read when a run starts
    >>> config.task, config.task_settings.frames
    ('ucf101', 8)
    """

    title = "UCF101"
    dataset = "ucf101"
    folders = ("UCF101", "ucf101")
    paper = "UCF101 (Soomro, Zamir and Shah, 2012)"
    how = "get UCF101.rar and UCF101TrainTestSplits-RecognitionTask.zip from crcv.ucf.edu and unpack both there"

    def listing(self, place: Path) -> tuple[list[str], list[Clip], list[Clip]]:
        """Read classInd.txt, trainlist0x.txt and testlist0x.txt; videos lie in UCF-101/<class>/."""
        splits = inside(place, "ucfTrainTestlist", "TrainTestlist")
        numbered = [line.split(maxsplit=1) for line in lines_of(data_file(splits, "classInd.txt", how=self.how))]
        with reading(splits / "classInd.txt", "lines of a number and a class"):
            names = [name for _, name in sorted((int(number), name) for number, name in numbered)]
        videos = "UCF-101/" if (place / "UCF-101").is_dir() else ""
        lists = []
        for kind in ("train", "test"):
            path = data_file(splits, f"{kind}list0{self.split}.txt", how=self.how)
            rows = [line.split()[0] for line in lines_of(path)]
            lists.append([Clip(videos + row, class_of(row.split("/")[0], names, path)) for row in rows])
        return names, lists[0], lists[1]


@TASKS.register("hmdb51")
class HMDB51(SplitVideoFolder):
    """HMDB51: 6,766 clips of 51 human actions (3,570 training, 1,530 test per split).

    >>> from asyncfl_lite import Config
    >>> config = Config(task="hmdb51", task_settings={"frames": 8})  # the files are read when a run starts
    >>> config.task, config.task_settings.frames
    ('hmdb51', 8)
    """

    title = "HMDB51"
    dataset = "hmdb51"
    folders = ("HMDB51", "hmdb51")
    paper = "HMDB51 (Kuehne, Jhuang, Garrote, Poggio and Serre, 2011)"
    how = "get hmdb51_org.rar and test_train_splits.rar from serre-lab.clps.brown.edu and unpack both there"

    def listing(self, place: Path) -> tuple[list[str], list[Clip], list[Clip]]:
        """Read the files <class>_test_split<n>.txt, which mark each clip 1 (training), 2 (testing) or 0 (neither)."""
        splits = inside(inside(place, "test_train_splits"), "testTrainMulti_7030_splits")
        ending = f"_test_split{self.split}.txt"
        files = sorted(path for path in splits.iterdir() if path.name.endswith(ending))
        if not files:
            raise DataError(f"folder: looked in {splits} for <class>{ending}, which is not there; {self.how}")
        names = [path.name.removesuffix(ending) for path in files]
        videos = next((f"{name}/" for name in ("hmdb51_org", "videos") if (place / name).is_dir()), "")
        marked: dict[str, list[Clip]] = {"0": [], "1": [], "2": []}
        for label, (name, path) in enumerate(zip(names, files, strict=True)):
            for line in lines_of(path):
                video, _, mark = line.strip().rpartition(" ")
                if mark not in marked:
                    raise DataError(f"{path}: a line must end in 0, 1 or 2, got {line!r}")
                marked[mark].append(Clip(f"{videos}{name}/{video.strip()}", label))
        return names, marked["1"], marked["2"]


@TASKS.register("kinetics")
class Kinetics(VideoFolder):
    """Kinetics-400: 10-second clips of 400 human actions, from video files and csv files.

    >>> from asyncfl_lite import Config
    >>> config = Config(task="kinetics", task_settings={"frames": 8})  # the files are read when a run starts
    >>> config.task, config.task_settings.frames
    ('kinetics', 8)
    """

    title = "Kinetics-400"
    dataset = "kinetics"
    folders = ("kinetics", "kinetics400", "k400", "Kinetics")
    paper = "Kinetics (Kay et al., 2017)"
    how = "get its train and val sets with their csv files from the CVD Foundation's copy, into train/ and val/"

    def listing(self, place: Path) -> tuple[list[str], list[Clip], list[Clip]]:
        """Read train.csv and val.csv; videos lie in train/ and val/, with or without a folder for each class.

        Many of the videos that the files list are no longer available; these are skipped like unreadable ones.
        """
        rows = {}
        for kind in ("train", "val"):
            path = data_file(inside(place, "annotations"), f"{kind}.csv", how=self.how)
            with reading(path, "a table in UTF-8"), path.open(newline="", encoding="utf-8") as file:
                table = csv.DictReader(file)
                if not {"label", "youtube_id", "time_start", "time_end"} <= set(table.fieldnames or ()):
                    raise DataError(f"{path}: must have the columns label,youtube_id,time_start,time_end")
                rows[kind] = [(row["label"], _video_name(row, path)) for row in table]
        names = sorted({label for label, _ in rows["train"]})
        train, validation = (
            [
                Clip(_where(place, kind, label, video), class_of(label, names, place / f"{kind}.csv"))
                for label, video in rows[kind]
            ]
            for kind in ("train", "val")
        )
        return names, train, validation


def _video_name(row: dict[str, str], path: Path) -> str:
    """Return a video's file name, as Kinetics' tools make it: its id, and the seconds of start and end."""
    try:
        return f"{row['youtube_id']}_{int(float(row['time_start'])):06d}_{int(float(row['time_end'])):06d}.mp4"
    except (TypeError, ValueError):
        raise DataError(f"{path}: time_start and time_end must be numbers, got {row}") from None


def _where(place: Path, kind: str, label: str, video: str) -> str:
    """Return the path of a video, which may lie in a folder of its class, with or without spaces in the name."""
    for folder in (label, label.replace(" ", "_")):
        if (place / kind / folder).is_dir():
            return f"{kind}/{folder}/{video}"
    return f"{kind}/{video}"


def inside(place: Path, *names: str) -> Path:
    """Return the first of the folders ``names`` that exists in ``place``; if none does, ``place`` itself."""
    return next((place / name for name in names if (place / name).is_dir()), place)


def lines_of(path: Path) -> list[str]:
    """Return the non-empty lines of a text file."""
    lines = [line for line in text_of(path).splitlines() if line.strip()]
    if not lines:
        raise DataError(f"{path}: must have at least one line, has none")
    return lines


def class_of(name: str, names: list[str], path: Path) -> int:
    """Return the index of class ``name`` in ``names``.

    Raises:
        DataError: when ``name`` is not among ``names``; the message names the file that has it.
    """
    if name not in names:
        raise DataError(f"{path}: class {name!r} is not among the {len(names)} that are known")
    return names.index(name)


def first_of_each(clips: list[Clip], count: int | None) -> list[Clip]:
    """Return the first ``count`` clips of each class, in order; all clips if ``count`` is None."""
    if count is None:
        return clips
    seen: Counter[int] = Counter()
    kept = []
    for clip in clips:
        seen[clip.label] += 1
        if seen[clip.label] <= count:
            kept.append(clip)
    return kept

"""The delay law of measured phones and networks, read from FLASH's device profiles.

The paper is Yang et al., "Characterizing Impacts of Heterogeneity in Federated Learning upon Large-Scale Smartphone
Data" (FLASH), WWW 2021. Its repository has files with the AI-Benchmark scores of phone models, the phone models of
recorded users, and means and standard deviations of the rates of measured networks. FLASH scales the training times of
three phones. Here, a job on a phone with the median score takes ``base`` seconds, and on any other phone the time is
inversely proportional to its score.
"""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from asyncfl_lite.base.errors import DataError, reason, shown
from asyncfl_lite.base.files import data_file, data_folder, data_root, regular
from asyncfl_lite.simulator.delays.base import DELAYS, ClientDelays, DelayLaw

NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]

NETWORKS, SCORES, PHONES = "speed_distri.json", "benchmark2score.json", "real2benchmark.json"
LINKS = ("down_u", "down_sigma", "up_u", "up_sigma")
"""Columns of a network: mean and standard deviation of the downlink, then of the uplink, in KiB/s, as in FLASH's code.
"""


@dataclass(frozen=True, eq=False)
class PhoneDelays(ClientDelays):
    """Durations made up of the model's download, training at the speed of the client's phone, and upload.

    Attributes:
        compute: (N,) seconds of computation in each job of a client.
        network: (N,) int32 index of a client's network in ``links``.
        links: (R, 4) the networks, in the order of ``LINKS``.
        kib: size of the model in KiB.
    """

    compute: np.ndarray
    network: np.ndarray
    links: np.ndarray
    kib: float

    def draw(self, client: int, rng: np.random.Generator) -> float:
        """Return the duration in seconds of one job of ``client``; download and upload each draw their own rate."""
        down, down_spread, up, up_spread = self.links[self.network.item(client)].tolist()
        transfers = self.kib / _rate(down, down_spread, rng) + self.kib / _rate(up, up_spread, rng)
        return self.compute.item(client) + transfers


def _rate(mean: float, spread: float, rng: np.random.Generator) -> float:
    """Return a transfer rate drawn from a normal distribution, redrawn until it is above 0."""
    while (rate := mean + spread * rng.standard_normal()) <= 0:
        pass
    return rate


@DELAYS.register("flash")
class FlashLaw(DelayLaw):
    """Download, compute at a phone's benchmarked speed, upload on a measured network (FLASH).

    >>> from asyncfl_lite.simulator.delays import DELAYS
    >>> law = DELAYS.get("flash")(base=30.0)  # its files are read when a run starts
    >>> law.unit, law.base
    ('s', 30.0)
    """

    unit = "s"

    folder: str | None = None
    """Folder that contains FLASH's three profile files, or a folder ``flash-devices`` with them."""
    base: NotNegative = 60.0
    """Seconds of computing per job on a phone with the median score."""
    model_bytes: NotNegative = 44_700_000
    """Bytes sent each way; the default is a ResNet-18's 11.17 million parameters in float32."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> PhoneDelays:
        """Draw each client's phone and network uniformly.

        Raises:
            DataError: if a file is missing or not in FLASH's format.
        """
        scores, networks = read_phones(self.place()), read_networks(self.place() / NETWORKS)
        phones = scores[rng.integers(len(scores), size=len(num_samples))]
        network = rng.integers(len(networks), size=len(num_samples), dtype=np.int32)
        return PhoneDelays(self.base * np.median(scores) / phones, network, networks, self.model_bytes / 1024)

    def files(self) -> list[Path]:
        """Return the paths of the three profile files; an empty list if one is missing."""
        with suppress(DataError):
            return [self.place() / name for name in (NETWORKS, SCORES, PHONES)]
        return []

    def place(self) -> Path:
        """Return the folder of the profile files.

        Raises:
            DataError: if one of the three files is missing.
        """
        root = data_root(self.folder)
        how = "they are in the repository PKU-Chengxu/FLASH on GitHub"
        place = root if (root / NETWORKS).is_file() else data_folder(self.folder, "flash-devices", "flash", how=how)
        for name in (NETWORKS, SCORES, PHONES):
            data_file(place, name, how=how)
        return place


def read_phones(place: Path) -> np.ndarray:
    """Read the (P,) benchmark scores of users' phones, one for each recorded name of a phone.

    Names without a score are left out, since nothing is known about their speed.

    Raises:
        DataError: if a file is not in FLASH's format; the message names it and the fault.
    """
    scores, phones = (_mapping(place / name) for name in (SCORES, PHONES))
    for model, score in scores.items():
        _check(place / SCORES, model, score, above=True)
    for name, model in phones.items():
        if not isinstance(model, str):
            raise DataError(f"{place / PHONES}: {name} must be the name of a phone, got {shown(model)}")
    known = [float(scores[model]) for model in phones.values() if model in scores]
    if not known:
        raise DataError(f"{place / PHONES}: no phone has a score in {SCORES}")
    return np.array(known)


def read_networks(path: Path) -> np.ndarray:
    """Read the (R, 4) rates of measured networks, with columns in the order of ``LINKS``.

    Raises:
        DataError: if the file is not in FLASH's format; the message names it and the fault.
    """
    networks = _mapping(path)
    for name, network in networks.items():
        if not isinstance(network, dict) or not set(LINKS) <= set(network):
            raise DataError(f"{path}: network {name!r} must have {', '.join(LINKS)}")
        for link in LINKS:
            _check(path, f"{name}.{link}", network[link], above=link.endswith("_u"))
    return np.array([[network[link] for link in LINKS] for network in networks.values()], dtype=float)


def _mapping(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file; raise an error if it is empty."""
    try:
        content = json.loads(regular(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read ({reason(error)})") from None
    if not isinstance(content, dict) or not content:
        raise DataError(f"{path}: must hold a JSON object that is not empty")
    return content


def _check(path: Path, name: str, value: Any, *, above: bool) -> None:
    """Raise an error unless ``value`` is a finite number above 0, or is 0 and ``above`` is False."""
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not (0 < number < math.inf or (number == 0 and not above)):
        raise DataError(f"{path}: {name} must be a number {'above' if above else 'of at least'} 0, got {shown(value)}")

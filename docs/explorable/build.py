"""Write docs/explore.html, the page without a kernel, from the files beside this one: ``make explorable``.

It is one file that asks the network for nothing: styles, scripts, and scikit-learn's digits as bytes.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
from matplotlib.colors import to_hex

from asyncfl_lite import plots
from asyncfl_lite.tasks.images.packaged import digits_images, split

HERE = Path(__file__).parent
PAGE = HERE.parent / "explore.html"
METHODS = ("fedbuff", "fedasync", "fedecho", "kuiper")
STALEST = 60
"""Versions late, the end of the page's scale of colours."""


def _bytes(values: np.ndarray) -> str:
    return base64.b64encode(values.astype(np.uint8).tobytes()).decode()


def data() -> dict[str, object]:
    """Return what the page's scripts know: the package's digits, training images first, and its colours."""
    (train, train_labels), (test, test_labels) = split(*digits_images(), 360)
    images = np.concatenate([train.numpy(), test.numpy()]).reshape(-1, 64)
    scale = plots.staleness_scale(STALEST)
    return {
        "train": len(train),
        "mean": round(float(train.mean()), 7),
        "std": round(float(train.std()), 7),
        "images": _bytes(np.rint(16 * images)),
        "labels": _bytes(np.concatenate([train_labels.numpy(), test_labels.numpy()])),
        "colours": {name: plots.colour(name) for name in METHODS},
        "staleness": [to_hex(scale.to_rgba(value)) for value in np.expm1(np.linspace(0, np.log1p(STALEST), 24))],
    }


def page() -> str:
    """Return the page."""
    parts = {
        "/*STYLE*/": (HERE / "style.css").read_text(encoding="utf-8"),
        "/*ENGINE*/": (HERE / "engine.js").read_text(encoding="utf-8"),
        "/*PAGE*/": f"const DATA = {json.dumps(data())};\n{(HERE / 'page.js').read_text(encoding='utf-8')}",
    }
    text = (HERE / "page.html").read_text(encoding="utf-8")
    for place, content in parts.items():
        before, _, after = text.partition(place)
        text = before + content + after
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE}: {PAGE.stat().st_size / 1000:.0f} kB")

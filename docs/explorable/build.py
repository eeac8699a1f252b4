"""Write docs/explore.html and its sister pages, which need no kernel: ``make explorable``.

Each page is one file with its styles, its scripts, and scikit-learn's digits as bytes, and loads nothing from the
network. What the pages say about our recorded runs is read from docs/findings.md.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import seaborn as sns
from matplotlib.colors import to_hex

from asyncfl_lite import plots
from asyncfl_lite.tasks.images.base import digits_images, split

HERE = Path(__file__).parent
DRAWINGS = HERE.parents[1] / "asyncfl_course/explore/pictures"
METHODS = ("fedbuff", "fedasync", "fedecho", "kuiper", "fedadt", "fedrevive", "afl_dw")
STALEST = 60
"""Staleness at which the pages' colour scale ends, in versions."""

ENGINE = ["engine/random.js", "engine/network.js", "engine/adam.js", "methods/fedbuff.js", "methods/fedasync.js"]
ENGINE += [
    "methods/fedecho.js",
    "methods/kuiper.js",
    "methods/fedadt.js",
    "methods/generator.js",
    "methods/fedrevive.js",
]
ENGINE += ["engine/clock.js", "engine/digits.js", "engine/federation.js"]
SHOWN = [
    "page/canvas.js",
    "page/clock_picture.js",
    "page/accuracy_picture.js",
    "page/digit_pictures.js",
    "page/story.js",
]
SHOWN += ["page/knobs.js", "page/evidence.js", "page/burst_pictures.js", "page/method_pictures.js"]
PAGES = {
    "explore": "Asynchronous federated learning in six steps",
    "explore_fedecho": "FedEcho: a server that remembers",
    "explore_kuiper": "KUIPER: devices that wait for company",
    "explore_fedadt": "FedADT: a lesson for late models",
    "explore_fedrevive": "FedRevive: learning from made-up images",
}
LESSON_OF = {
    "explore": ("00_start_here", "00 · Start here"),
    "explore_fedecho": ("07_fedecho", "07 · FedEcho"),
    "explore_kuiper": ("05_kuiper", "05 · KUIPER"),
    "explore_fedadt": ("09_fedadt", "09 · FedADT"),
    "explore_fedrevive": ("10_fedrevive", "10 · FedRevive"),
}
METHOD_OF = {
    "explore_fedecho": "FedEcho",
    "explore_kuiper": "KUIPER",
    "explore_fedadt": "FedADT",
    "explore_fedrevive": "FedRevive",
}

_spec = importlib.util.spec_from_file_location("evidence", HERE / "evidence.py")
evidence = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(evidence)


def _bytes(values: np.ndarray) -> str:
    return base64.b64encode(values.astype(np.uint8).tobytes()).decode()


def data() -> dict[str, object]:
    """Return the data for a page's scripts: the library's digits (training images first), colours, our findings."""
    (train, train_labels), (test, test_labels) = split(*digits_images(), 360)
    images = np.concatenate([train.numpy(), test.numpy()]).reshape(-1, 64)
    scale = plots.staleness_scale(STALEST)
    return {
        "train": len(train),
        "mean": round(float(train.mean()), 7),
        "std": round(float(train.std()), 7),
        "images": _bytes(np.rint(16 * images)),
        "labels": _bytes(np.concatenate([train_labels.numpy(), test_labels.numpy()])),
        "colours": {name: [to_hex(plots.shade(name, number)) for number in range(4)] for name in METHODS},
        "staleness": [to_hex(scale.to_rgba(value)) for value in np.expm1(np.linspace(0, np.log1p(STALEST), 24))],
        "bursts": [to_hex(colour) for colour in sns.color_palette("colorblind", 8)],
        "leads": evidence.leads(evidence.FINDINGS.read_text(encoding="utf-8")),
    }


def still(name: str) -> str:
    """Return the drawing that a page shows where scripts do not run."""
    method = METHOD_OF.get(name, "").lower()
    drawing = DRAWINGS / f"{method}.svg" if method else HERE.parent / "pictures/idea_staleness.svg"
    return drawing.read_text(encoding="utf-8").replace(' xmlns="http://www.w3.org/2000/svg"', "").strip()


def page(name: str = "explore") -> str:
    """Return the HTML of a page, such as ``explore_kuiper``."""
    lead, (lesson, called) = (HERE / f"stories/{name}.lead.html").read_text(encoding="utf-8").strip(), LESSON_OF[name]
    story = f"stories/{name}.js"
    scripts = "\n".join((HERE / path).read_text(encoding="utf-8") for path in [*ENGINE, *SHOWN, story, "page/theme.js"])
    known, begin = (
        f"const DATA = {json.dumps(data())};\n",
        "const DIGITS = overlaidDigits(DATA), story = new Story(STEPS);\n",
    )
    head, _, last = scripts.rpartition("// Light or dark")
    others = " · ".join(f'<a href="{other}.html">{title}</a>' for other, title in PAGES.items() if other != name)
    parts = {
        "/*TITLE*/": PAGES[name],
        "/*STYLE*/": (HERE / "style.css").read_text(encoding="utf-8"),
        "/*LEAD*/": lead,
        "/*DESCRIPTION*/": re.sub(r"<.*?>", "", lead),
        "/*LESSON*/": f'<a href="../notebooks/{lesson}.ipynb">{called}</a>',
        "/*STILL*/": still(name),
        "/*FOOTER*/": (HERE / "footer.html").read_text(encoding="utf-8").replace("/*OTHERS*/", others).strip(),
        "/*SCRIPT*/": f'"use strict";\n{known}{head}{begin}// Light or dark{last}',
    }
    text = (HERE / "page.html").read_text(encoding="utf-8")
    for mark, content in parts.items():
        text = text.replace(mark, content)
    return text


if __name__ == "__main__":
    for name in PAGES:
        path = HERE.parent / f"{name}.html"
        path.write_text(page(name), encoding="utf-8")
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")

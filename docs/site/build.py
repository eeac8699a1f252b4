"""The site: ``make site`` makes ``site/index.html`` from the pages, the saved notebooks and the code.

    .venv/bin/python docs/site/build.py

First everything is put into ``build/site`` (:mod:`stage`), then Sphinx turns it into HTML. Nothing is executed but
imports, and nothing is fetched. A second call builds only what has changed.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from rooms import ROOMS
from sphinx.cmd.build import build_main
from stage import ROOT, stage

HERE = Path(__file__).parent


def build(source: Path, site: Path, *options: str, lessons: str = "*", rooms: Sequence[str] = ROOMS) -> int:
    """Make the site, and return Sphinx's exit code.

    Args:
        source: folder in which the pages are put together.
        site: folder for the HTML.
        options: further options of sphinx-build.
        lessons: pattern of the notebooks' names, such as ``00_*``, for a part of the site.
        rooms: the library's rooms that get a page of reference.
    """
    gc.set_threshold(100_000, 20, 20)  # a page is a million objects that all stay, and checking them takes seconds
    notebooks = stage(source, lessons, rooms)
    made = source.with_name(f"{source.name}-made")  # MyST-NB leaves notebooks beside the HTML
    code = build_main(["-q", "-c", str(HERE), "-d", str(made / "doctrees"), *options, str(source), str(made / "html")])
    for original in notebooks:  # a reader downloads the lesson as it is, not as it was prepared for the page
        target = made / "html/_sources/notebooks" / original.name
        if target.exists():
            shutil.copyfile(original, target)
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(made / "html", site)
    return code


def main() -> int:
    """Make the site in the folder ``site``, and print how long it took."""
    parser = argparse.ArgumentParser(description="Make site/index.html from the pages, saved notebooks and the code.")
    parser.add_argument("--repository", default="", help="address of the repository, for links to its files")
    asked = parser.parse_args()
    begun = time.perf_counter()
    options = ["-D", f"repository={asked.repository}"] if asked.repository else []
    code = build(ROOT / "build/site", ROOT / "site", "-W", "--keep-going", "-j", "auto", *options)
    if code == 0:
        print(f"site/index.html, made in {time.perf_counter() - begun:.0f} s: open it in a browser")
        served = ".venv/bin/python -m http.server --bind 127.0.0.1 -d site"
        print(f"The search shows excerpts if the pages are served: {served}")
    return code


if __name__ == "__main__":
    raise SystemExit(main())

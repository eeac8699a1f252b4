"""Assemble the site's source from existing pages, prepared lessons, and pages made from the code."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from lessons import PICTURES, prepared
from rooms import ROOMS, room_pages
from settings import settings_page
from verdicts import verdicts_page

from asyncfl_course.student import TRACK, books

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "notebooks/README.md")
"""Pages in the repository's root, in addition to those in ``docs``."""
ASKED = {"docs/adding_a_method.md": "How do I add my method?", "docs/findings.md": "Does FedEcho work?"}
"""Page -> the question under which the search shows it first."""
CODE = re.compile(r"```python\n(.*?)```", re.S)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def stage(target: Path, lessons: str = "*", rooms: Sequence[str] = ROOMS) -> list[Path]:
    """Put the site's source into a folder, and return the paths of the notebooks from which its lessons are made.

    Args:
        target: the folder.
        lessons: pattern of the notebooks' names.
        rooms: the library's rooms that get a page of reference.

    Files that would stay the same are not written, so that Sphinx leaves their pages alone.
    """
    notebooks = [path for path in books(ROOT) if path.match(f"{lessons}.ipynb")]
    pages = {name: (ROOT / name).read_text() for name in PAGES}
    pages |= {f"docs/{path.name}": path.read_text() for path in (ROOT / "docs").glob("*.md")}
    readme = (ROOT / "README.md").read_text()
    made = {"index.md": home(readme, [f"notebooks/{path.stem}" for path in notebooks], rooms)}
    made |= {f"notebooks/{path.name}": prepared(path) for path in notebooks}
    made |= room_pages(rooms) | {"settings.md": settings_page(), "verdicts.md": verdicts_page()}
    names = {*pages, *made}
    made |= {name: linked(text, Path(name).parent, names) for name, text in pages.items()}
    made |= {name: f"```{{index}} !single: {asks}\n```\n\n{made[name]}" for name, asks in ASKED.items()}
    for name, text in made.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    for path in target.rglob("*"):
        if path.suffix in {".md", ".rst", ".ipynb"} and path.relative_to(target).as_posix() not in made:
            path.unlink()
    for folder in ("docs/pictures", PICTURES):
        shutil.copytree(ROOT / folder, target / folder, dirs_exist_ok=True, ignore=_no_pages)
    return notebooks


def _no_pages(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name.endswith((".md", ".py")) or name == "__pycache__"]


def home(readme: str, lessons: list[str], rooms: Sequence[str]) -> str:
    """Return the first page, with the table of leads of docs/findings.md and the example in Python of README.md."""
    text = (HERE / "index.md").read_text()
    findings = (ROOT / "docs/findings.md").read_text()
    _, found, after = findings.partition("| lead over FedBuff |")
    rows = (found + after).partition("\n\n")[0].splitlines()
    table = "\n".join(row.rsplit("|", 2)[0] + "|" for row in rows)  # without the cells' names
    used = CODE.search(readme)[1]
    tracks = [name for name in lessons if name.endswith(TRACK)]
    numbered = [name for name in lessons if name not in tracks]
    parts = {"LEADS": table, "USE": f"```python\n{used}```", "TRACKS": "\n".join(tracks)}
    parts["LESSONS"] = "\n".join(["notebooks/README", *numbered])
    parts["ROOMS"] = "\n".join(f"reference/{room}" for room in rooms)
    pages = [f"docs/{path.stem}" for path in sorted((ROOT / "docs").glob("*.md"))]
    parts["MORE"] = "\n".join(name for name in pages if f"\n{name}\n" not in text)
    for name, part in parts.items():
        assert part.strip() or name in ("MORE", "TRACKS"), (
            f"README.md no longer has what the first page shows as {name}"
        )
        text = text.replace(f"%{name}%", part)
    return text


def linked(text: str, folder: Path, names: set[str]) -> str:
    """Return a page with its links to files outside the site's pages as links to HTML or into the repository.

    A number and its deviation stay on one line.
    """

    def link(found: re.Match[str]) -> str:
        said, to, anchor = found[1], found[2], found[3] or ""
        path = Path("/", folder, to).resolve().as_posix()[1:]
        if path in names:
            return found[0]
        if path.endswith(".html"):
            return f'<a href="{to}{anchor}">{said}</a>'
        return f"{{repository}}`` {said} <{path}> ``"  # the link's text may be code

    fences = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(
        part if part.startswith("```") else LINK.sub(link, part).replace(" ± ", "\u00a0±\u00a0") for part in fences
    )

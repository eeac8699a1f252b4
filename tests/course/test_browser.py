"""What a reader does: opens a notebook in JupyterLab, runs it, moves a slider, sees the picture change."""

from __future__ import annotations

import base64
from pathlib import Path

import nbformat
import pytest

pytest.importorskip("playwright", reason="playwright is not installed: pip install -e '.[test]'")

import browser
import pictures
from playwright.sync_api import Locator, TimeoutError

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
PICTURE = """async picture => {
    const bytes = new Uint8Array(await (await fetch(picture.src)).arrayBuffer());
    return btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(''));
}"""

SHOWN = ".jp-Notebook:visible .jp-OutputArea-output img"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def page_and_address(tmp_path_factory):
    """A page of a browser, and the address of a JupyterLab that serves copies with nothing in them run yet."""
    if not (executable := browser.find_browser()):
        pytest.skip("no browser: install Chromium or Chrome, or name one in ASYNCFL_BROWSER")
    home = tmp_path_factory.mktemp("lab")
    folder = browser.copied(NOTEBOOKS, home)
    unrun(folder / "00_start_here.ipynb")
    with browser.lab(folder, home) as address, browser.browser_page(executable) as page:
        yield page, address


def unrun(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    book.metadata.pop("widgets", None)
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.update(outputs=[], execution_count=None)
    nbformat.write(book, path)


def test_start_here_runs_and_its_slider_moves_the_picture(page_and_address):
    page, address = page_and_address
    thrown: list[str] = []
    page.on("pageerror", lambda error: thrown.append(str(error)))
    page.on("console", lambda said: thrown.append(said.text) if "Could not create a view" in said.text else None)
    browser.open_notebook(page, address, "00_start_here.ipynb")
    before = page.evaluate(browser.STATE)
    assert len(before["counts"]) >= 25 and not any(before["counts"]), "the copy must not have been run"
    assert browser.run_all(page) == [] == thrown
    assert page.evaluate(browser.STATE)["counts"] == list(range(1, len(before["counts"]) + 1))

    explorer = page.locator(".jp-OutputArea-output .jupyter-widgets", has=page.get_by_role("slider")).first
    explorer.scroll_into_view_if_needed()
    slider, picture = explorer.get_by_role("slider").first, explorer.locator("img").first
    seen, values = [drawn(picture)], [slider.get_attribute("aria-valuenow")]
    for key in ("ArrowRight", "End"):
        seen.append(after_key(key, slider, picture))
        values.append(slider.get_attribute("aria-valuenow"))
        assert "arrivals: version" in picture.get_attribute("alt")
    assert len(set(seen)) == len(set(values)) == 3
    assert page.evaluate(browser.STATE)["errors"] == [] and thrown == []
    assert all(said := page.locator(SHOWN).evaluate_all("all => all.map(one => one.alt)")) and len(said) >= 9


def test_pictures_of_a_saved_lesson_have_their_words_in_jupyterlab(page_and_address):
    """Figures, a drawing, and the pictures that were saved with controls, before anything is run."""
    page, address = page_and_address
    expected = list(pictures.words(nbformat.read(NOTEBOOKS / "10_fedrevive.ipynb", as_version=4)))
    browser.open_notebook(page, address, "10_fedrevive.ipynb")
    page.locator(SHOWN).nth(len(expected) - 1).wait_for(state="attached")
    assert page.locator(SHOWN).evaluate_all("all => all.map(one => one.alt)") == expected
    assert len(expected) >= 5 and page.locator(".jupyter-widgets img").count() >= 2


def drawn(picture: Locator) -> bytes:
    """The PNG that a picture shows."""
    png = base64.b64decode(picture.evaluate(PICTURE))
    assert png.startswith(b"\x89PNG")
    return png


def after_key(key: str, slider: Locator, picture: Locator) -> bytes:
    """Press a key on a slider; return the PNG that is there once another picture has come."""
    before, place = picture.get_attribute("src"), picture.locator("..").element_handle()  # a new element comes there
    slider.press(key)
    came = """([place, old]) => {
        const picture = place.querySelector('img');
        return picture && picture.src !== old && picture.complete && picture.naturalWidth > 300;
    }"""
    try:
        picture.page.wait_for_function(came, arg=[place, before], polling=100)
    except TimeoutError:
        raise AssertionError(f"{key} on the slider: no other picture came") from None
    return drawn(picture)


def test_the_browser_can_be_named_or_declined(monkeypatch, tmp_path):
    mine = tmp_path / "mine"
    mine.write_text("#!/bin/sh\n")
    mine.chmod(0o755)
    monkeypatch.setenv("ASYNCFL_BROWSER", str(mine))
    assert browser.find_browser() == str(mine)
    monkeypatch.setenv("ASYNCFL_BROWSER", "none")
    assert browser.find_browser() is None
    monkeypatch.setenv("ASYNCFL_BROWSER", "no-such-browser")
    with pytest.raises(FileNotFoundError, match="ASYNCFL_BROWSER: must be .* got 'no-such-browser'"):
        browser.find_browser()
    monkeypatch.delenv("ASYNCFL_BROWSER")
    (tmp_path / "chromium-browser").symlink_to(mine)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert browser.find_browser() == str(tmp_path / "chromium-browser")

"""The site in a real browser: its links lead somewhere, nothing goes wrong or out, and it can be read by everybody."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: pip install -e '.[test]'")
pytest.importorskip("myst_nb", reason="the site's packages are not installed: pip install -e '.[site]'")
import browser

ROOT = Path(__file__).parents[2]
DESKTOP, PHONE = (1400, 1000), (390, 844)
QUIET = ("[PST]", "Anchored content block not found")
"""How the theme begins what it says about its modes, and Sphinx about an excerpt that it then takes from the page."""
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The whole site, made anew."""
    sys.path.insert(0, str(ROOT / "docs/site"))
    from build import build

    folder = tmp_path_factory.mktemp("site")
    assert build(folder / "source", folder / "site", "-W", "--keep-going", "-j", "auto") == 0
    return folder / "site"


@pytest.fixture(scope="module")
def pages(site) -> list[Path]:
    """All pages; the theme's own templates, which lie among its static files, are none."""
    return sorted(page for page in site.rglob("*.html") if "_static" not in page.parts)


@pytest.fixture(scope="module")
def served(site) -> Iterator[str]:
    """The address under which the site is served: a page that is opened as a file may fetch no other."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def page(site, served):
    """A page of a browser; errors, and requests for anything but the site's files, must not be."""
    if not (executable := browser.find_browser()):
        pytest.skip("no browser: install Chromium or Chrome, or name one in ASYNCFL_BROWSER")
    wrong: list[str] = []
    inside = (site.as_uri(), served, "data:", "blob:")
    with browser.browser_page(executable, DESKTOP) as page:
        page.on("console", lambda said: wrong.append(said.text) if not said.text.startswith(QUIET) else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith(inside) else None)
        yield page
    assert wrong == []


@cache
def anchors(path: Path) -> set[str]:
    return set(re.findall(r"\sid=\"([^\"]+)\"", path.read_text()))


def test_no_link_is_broken(pages):
    broken = []
    for path in pages:
        for link in set(re.findall(r"<a\b[^>]*?href=\"([^\"]+)\"", path.read_text())):
            if re.match(r"[a-z]+:", link):
                continue
            to, _, anchor = link.partition("#")
            target = (path.parent / unquote(to.partition("?")[0])).resolve() if to else path
            if not target.exists() or (anchor and target.suffix == ".html" and unquote(anchor) not in anchors(target)):
                broken.append(f"{path.name}: {link}")
    assert len(pages) > 50 and broken == []


def test_every_picture_has_words(pages):
    lacking = [
        f"{path.name}: {tag[:80]}"
        for path in pages
        for tag in re.findall(r"<img\b[^>]*>", path.read_text())
        if path.name != "explore.html" and not re.search(r"\balt=\"[^\"]{4}", tag)
    ]
    assert lacking == []


def opened(page, address: Path | str, size: tuple[int, int] = DESKTOP):
    """Open a page in this size, and wait until its formulas are drawn."""
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(address if isinstance(address, str) else address.as_uri())
    page.evaluate("window.MathJax?.startup?.promise.then(() => null)")
    return page


WIDER = """what => [...document.querySelectorAll(what)].filter(one => one.scrollWidth > one.clientWidth).length"""
"""How many of these are wider than their place."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_page_opens_without_errors_and_never_scrolls_sideways(page, pages, site, size, scheme):
    """No formula fails, and on a desktop none is wider than its column."""
    page.emulate_media(color_scheme=scheme)
    wide = {}
    for path in pages:
        width = opened(page, path, size).evaluate("document.documentElement.scrollWidth")
        formulas = size is DESKTOP and page.evaluate(WIDER, "mjx-container[display=true]")
        assert page.locator("mjx-merror").count() == 0, path.name
        if width > size[0] or formulas:
            wide[path.relative_to(site).as_posix()] = width, formulas
    assert wide == {}


def test_a_phone_shows_formulas_from_their_beginning_and_scrolls_what_is_too_wide_for_a_sentence(page, site):
    opened(page, site / "notebooks/07_fedecho.html", PHONE)
    left = page.evaluate("""[...document.querySelectorAll("mjx-container[display=true]")].map(
        formula => formula.querySelector("g").getBoundingClientRect().left)""")
    assert len(left) >= 4 and min(left) >= 0
    opened(page, site / "notebooks/14_theory.html", PHONE)
    page.locator("span.math[data-width=wide]").first.wait_for()
    styles = page.evaluate("""[...document.querySelectorAll(".bd-article span.math")].map(formula => [
        formula.firstElementChild.getBoundingClientRect().width > formula.clientWidth + 1,
        getComputedStyle(formula).overflowX, formula.tabIndex])""")
    assert {tuple(style) for style in styles} == {(True, "auto", 0), (False, "visible", -1)}


@pytest.mark.parametrize(
    ("name", "size", "table", "fewest"),
    [("settings", PHONE, "table.settings", 50), ("docs/results", DESKTOP, ".bd-article table", 5)],
)
def test_every_column_of_a_table_is_in_sight(page, site, name, size, table, fewest):
    """On a phone settings stand one below another."""
    opened(page, site / f"{name}.html", size)
    assert page.locator(table).count() >= fewest and page.evaluate(WIDER, table) == 0


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", ["index.html", "docs/findings.html", "docs/results.html", "verdicts.html"])
def test_words_in_tables_stay_whole(page, site, name, size):
    words = opened(page, site / name, size).evaluate("""[...document.querySelectorAll(":is(th, td) > p")].flatMap(cell => {
        const node = cell.firstChild, range = document.createRange();
        if (node?.nodeType !== Node.TEXT_NODE) return [];
        return [...node.data.matchAll(/[\\w.+−]+/g)].map(({0: word, index}) => {
            range.setStart(node, index);
            range.setEnd(node, index + word.length);
            return [word, new Set([...range.getClientRects()].map(line => Math.round(line.top))).size];
        });
    })""")
    assert len(words) > 20 and [word for word, lines in words if lines > 1] == []


def test_the_drawing_of_a_method_stands_beside_what_a_lesson_begins_with(page, site):
    page.goto((site / "notebooks/07_fedecho.html").as_uri())
    lead = page.locator("blockquote").first.bounding_box()
    drawing = page.locator("img.method-drawing").bounding_box()
    assert lead["x"] + lead["width"] <= drawing["x"] and lead["y"] < drawing["y"] + drawing["height"]


def test_the_search_finds_staleness(page, site, served):
    for address in (site.as_uri(), served):
        page.goto(f"{address}/search.html?q=staleness")
        page.wait_for_function("document.querySelectorAll('#search-results li').length >= 10")
        assert page.locator("#search-results li", has_text="Virtual time").count()
    page.locator("#search-results li p.context").first.wait_for()  # served, with excerpts


@pytest.mark.parametrize("asks, page_of", [("add my method", "Adding a method"), ("does FedEcho work", "Findings")])
def test_the_search_answers_a_question_first(page, served, asks, page_of):
    page.goto(f"{served}/search.html?q={asks}")
    page.locator("#search-results li a").first.wait_for()
    assert page.locator("#search-results li a").first.inner_text() == page_of


def test_the_first_lesson_has_formulas_folded_answers_and_its_page_over_a_still_picture_in_the_dark(page, site):
    """The theme dims pictures, and what is dimmed lies on top."""
    page.emulate_media(color_scheme="dark")
    opened(page, site / "notebooks/00_start_here.html")
    assert page.locator("mjx-container svg").count() >= 10
    box = page.locator("iframe.explorable").bounding_box()
    on_top = "([x, y]) => document.elementFromPoint(x, y).className"
    assert page.evaluate(on_top, [box["x"] + 60, box["y"] + 60]) == "explorable"
    solution = page.locator("details", has_text="answer = (121, 29)").first
    inner = solution.locator("pre").first
    assert not inner.is_visible()
    solution.locator("summary").click()
    assert inner.is_visible()


KINDS = (
    "index", "search", "settings", "verdicts", "docs/explore", "docs/findings", "docs/glossary", "notebooks/07_fedecho",
    "reference/asyncfl_lite", "reference/base",
)  # fmt: skip
"""One page of each kind; axe takes a second for each 1,500 nodes, most of it for contrast."""


SETTLED = """Promise.all(document.getAnimations().filter(one => one instanceof CSSTransition)
    .map(one => one.finished.catch(() => null))).then(() => null)"""
"""Waits until colours that change with the scheme have their final values."""


def kept_out(page, path: Path, size: tuple[int, int], **rules: dict) -> dict[str, list[str]]:
    """What axe-core finds serious or critical on a page with all that folds open: rule -> the first nodes."""
    opened(page, path, size)
    page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.evaluate(SETTLED)
    return browser.serious(page, rules)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_keeps_a_reader_out_of_a_page_of_any_kind(page, pages, site, scheme):
    """``ASYNCFL_EVERY_PAGE=1`` has all pages tested, which takes four minutes a scheme."""
    page.emulate_media(color_scheme=scheme)
    looked_at = pages if os.environ.get("ASYNCFL_EVERY_PAGE") else [site / f"{name}.html" for name in KINDS]
    found = {path.relative_to(site).as_posix(): kept_out(page, path, DESKTOP) for path in looked_at}
    assert len(found) >= 10 and {name: said for name, said in found.items() if said} == {}


def test_nothing_but_contrast_keeps_a_reader_out_of_any_page_on_a_phone(page, pages, site):
    """Contrast takes four fifths of the time, and is the same on pages of one kind."""
    aside = {"color-contrast": {"enabled": False}}
    found = {path.relative_to(site).as_posix(): kept_out(page, path, PHONE, **aside) for path in pages}
    assert len(found) > 50 and {name: said for name, said in found.items() if said} == {}

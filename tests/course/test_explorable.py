"""docs/explore.html: one file that asks for nothing, whose arithmetic is the package's, and whose controls move it."""

from __future__ import annotations

import importlib.util
import re
import time
from pathlib import Path

import pytest

from asyncfl_lite import Config, Run

pytest.importorskip("playwright", reason="playwright is not installed: pip install -e '.[test]'")
import browser

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explore.html"
_spec = importlib.util.spec_from_file_location("explorable", ROOT / "docs/explorable/build.py")
explorable = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(explorable)


# --- the file ---------------------------------------------------------------------------------------


def test_it_is_what_its_sources_make():
    assert PAGE.read_text(encoding="utf-8") == explorable.page(), "make explorable"


def test_it_is_small_and_names_nothing_to_load():
    text = PAGE.read_text(encoding="utf-8")
    assert len(text.encode()) <= 500_000
    assert not re.search(r"https?:|@import|\bsrc=|url\(|fetch\(|XMLHttpRequest|import\(", text)


# --- in a browser -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chromium():
    """A page of a browser."""
    if not (executable := browser.find_browser()):
        pytest.skip("no browser: install Chromium or Chrome, or name one in ASYNCFL_BROWSER")
    with browser.browser_page(executable) as page:
        yield page


@pytest.fixture
def page(chromium):
    """The explorable page, opened; what it said on the console, threw or asked for must be nothing."""
    said: list[str] = []
    hooks = {
        "console": lambda message: said.append(message.text),
        "pageerror": lambda error: said.append(str(error)),
        "request": lambda request: said.append(request.url) if request.url != PAGE.as_uri() else None,
    }
    for event, hook in hooks.items():
        chromium.on(event, hook)
    chromium.goto(PAGE.as_uri())
    yield chromium
    for event, hook in hooks.items():
        chromium.remove_listener(event, hook)
    assert said == []


METHODS = {
    "fedbuff": ({"server_lr": 0.7}, {"step": 0.7}),
    "fedasync": ({"settings": {"mixing": 0.5}, "buffer_size": 1}, {"mixing": 0.5}),
    "fedecho": (
        {"server_lr": 0.7, "settings": {"distill_set": "natural", "distill_samples": 30, "distill_batch_size": 20,
                                        "distill_q": 2, "distill_lr": 1e-3}},
        {"step": 0.7, "distillRate": 1e-3},
    ),
    "kuiper": ({"settings": {"mixing": 0.7}}, {"mixing": 0.7}),
}  # fmt: skip


def walked(method: str) -> tuple[dict, list[dict]]:
    """Run a method in the package; return what the page must be told, and what comes of every arrival."""
    settings, of_page = METHODS[method]
    session = Run(Config(**{
        "task": "digits", "model": "mlp", "model_settings": {"hidden": [32]}, "clients": 12, "concurrency": 6,
        "buffer_size": 3, "algorithm": method, "delay": "fedecho_mild", "alpha": 0.3, "rounds": 8, "client_lr": 0.2,
        "local_epochs": 2, "batch_size": 10, "weight_decay": 0.0, "eval_every": 8, "seed": 3, **settings,
    }))  # fmt: skip
    server, jobs, arrivals, passes = session.algorithm, {}, [], []
    plan, receive = session.trainer.plan, server.receive

    def planned(job):
        work = plan(job)
        batches = [[int(place) for place in row if place >= 0] for row in work.places]
        jobs[job.sequence_no] = {"client": job.client, "duration": job.finish_time - job.dispatched_at,
                                 "batches": batches}  # fmt: skip
        return work

    def received(update):
        receipt = receive(update)
        arrivals.append({"client": update.client, "staleness": server.version - bool(receipt) - update.start_version,
                         "delta": update.delta.tolist(), "x": server.x.tolist(), "version": server.version})  # fmt: skip
        return receipt

    session.trainer.plan, server.receive = planned, received
    if method == "fedecho":
        drawn = server._minibatches

        def minibatches():
            places, sizes = drawn()
            passes.append([part.tolist() for part in places.split(sizes)])
            return places, sizes

        server._minibatches = minibatches
        unlabelled = server.context.unlabelled("natural", 30).flatten(1).tolist()
    start = server.x.tolist()
    session.finish()
    given = {
        "method": method, "settings": {"buffer": 3, **of_page}, "x": start, "parts": [part.tolist() for part in session.parts],
        "images": session.task.inputs.flatten(1).tolist(), "labels": session.task.labels.tolist(), "concurrency": 6,
        "jobs": [jobs.get(number) for number in range(max(jobs) + 1)], "passes": passes,
        "unlabelled": unlabelled if method == "fedecho" else [], "arrivals": len(arrivals),
    }  # fmt: skip
    return given, arrivals


WALK = """given => {
    const net = Engine.network(64, 32, 10), jobs = given.jobs;
    const images = Float64Array.from([...given.images, ...given.unlabelled].flat());
    const unlabelled = given.unlabelled.map((_, i) => given.images.length + i);
    const data = {images, labels: Uint8Array.from(given.labels)};
    let next = 0, pass = 0;
    const server = new Engine.SERVERS[given.method](Float64Array.from(given.x), {
        net, data, unlabelled, minibatches: () => given.passes[pass++], ...given.settings});
    const clock = new Engine.Simulation({net, data, parts: given.parts, server, concurrency: given.concurrency, rate: 0.2, hooks: {
        choose: () => jobs[next] ? jobs[next].client : 0,
        duration: (client, job) => { next = job.number + 1; return jobs[job.number] ? jobs[job.number].duration : 1e9; },
        batches: (client, job) => jobs[job.number].batches,
    }});
    return Array.from({length: given.arrivals}, () => {
        const {update, job} = clock.next();
        return {client: job.client, staleness: update.staleness, delta: Array.from(update.delta),
                x: Array.from(server.x), version: server.version};
    });
}"""


@pytest.mark.parametrize("method", METHODS)
def test_its_arithmetic_is_the_packages(page, method):
    """Who arrives, how stale, every update and every version: the package's in single precision, the page's in double."""
    given, ours = walked(method)
    theirs = page.evaluate(WALK, given)
    assert len(ours) == len(theirs) >= 8
    for mine, its in zip(ours, theirs, strict=True):
        assert {name: mine[name] for name in ("client", "staleness", "version")} == {
            name: its[name] for name in ("client", "staleness", "version")
        }
        assert its["delta"] == pytest.approx(mine["delta"], abs=2e-5)
        assert its["x"] == pytest.approx(mine["x"], abs=1e-4)  # Adam divides by the smallest gradients
    moved = max(abs(a - b) for a, b in zip(ours[-1]["x"], given["x"], strict=True))
    assert moved > 0.1  # which is far more than the tolerance
    if method == "fedecho":
        assert len(given["passes"]) == ours[-1]["version"]


def picture(page) -> str:
    return page.evaluate(
        "() => ['clock', 'accuracy', 'buffer'].map(id => document.getElementById(id).toDataURL()).join()"
    )


SLIDERS = ("step", "slow", "flight", "buffer", "alpha")


def test_every_slider_and_method_moves_the_picture(page):
    page.get_by_role("button", name="Pause").click()
    seen = [picture(page)]
    for name in SLIDERS:
        slider = page.locator(f"#slider-{name} input")
        before = page.locator(f"#slider-{name} output").text_content()
        slider.focus()
        page.keyboard.press("Home")
        assert page.locator(f"#slider-{name} output").text_content() != before
        page.evaluate("() => { document.getElementById('play').click(); document.getElementById('play').click(); }")
        page.evaluate("() => new Promise(done => setTimeout(done, 50))")
        seen.append(picture(page))
    for name in ("FedAsync", "FedEcho", "KUIPER", "FedBuff"):
        page.get_by_text(name, exact=True).click()
        seen.append(picture(page))
    assert len(set(seen)) == len(seen)


def test_it_begins_by_itself_and_the_clock_goes_on_ten_times_a_second(page):
    step = "() => new Promise(done => { let n = 0, last = page.run.now; const look = () => { if (page.run.now !== last) { n++;"
    step += " last = page.run.now; } if (performance.now() > end) done(n); else requestAnimationFrame(look); };"
    step += " const end = performance.now() + 3000; look(); })"
    assert page.evaluate(step) >= 30
    assert page.evaluate("page.run.clock.arrivals") >= 10


def test_without_motion_it_waits_with_a_picture(page):
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    assert page.get_by_role("button", name="Play").is_visible()
    before = page.evaluate("page.run.now")
    time.sleep(0.3)
    assert page.evaluate("page.run.now") == before and page.evaluate("page.run.clock.arrivals") > 0
    page.keyboard.press("Space")
    page.wait_for_function(f"page.run.now > {before}")
    page.emulate_media(reduced_motion="no-preference")


def test_it_fits_a_phone(page):
    page.set_viewport_size({"width": 375, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    widths = page.evaluate("Array.from(document.querySelectorAll('canvas'), c => c.getBoundingClientRect().width)")
    assert min(widths) > 300
    page.set_viewport_size({"width": 1240, "height": 900})


def test_pictures_say_what_they_show(page):
    labels = page.evaluate("Array.from(document.querySelectorAll('canvas'), c => c.getAttribute('aria-label'))")
    assert len(labels) == 5 and all(len(label.split()) >= 2 for label in labels)

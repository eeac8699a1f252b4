"""docs/explore*.html: files that ask for nothing, whose arithmetic is the library's, and whose steps do what they say."""

from __future__ import annotations

import importlib.util
import json
import re
import statistics

import nbformat
import pytest
from PIL import Image

from asyncfl_course.pages import explorable as explorable_frame
from asyncfl_lite import Config, Run
from asyncfl_lite.algorithms import fedrevive, synthesis
from asyncfl_lite.models.compute import SampleSet
from conftest import ROOT

pytest.importorskip("playwright", reason="playwright is not installed: pip install -e '.[test]'")
import browser

_spec = importlib.util.spec_from_file_location("explorable", ROOT / "docs/explorable/build.py")
explorable = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(explorable)
FILES = {name: ROOT / f"docs/{name}.html" for name in explorable.PAGES}
FINDINGS = (ROOT / "docs/findings.md").read_text(encoding="utf-8")


# --- the files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_a_page_is_what_its_sources_make_loads_nothing_and_leads_to_its_lesson(name):
    text = FILES[name].read_text(encoding="utf-8")
    assert text == explorable.page(name), "make explorable"
    assert len(text.encode()) <= 500_000
    assert not re.search(r"https?:|@import|\bsrc=|url\(|fetch\(|XMLHttpRequest|import\(", text)
    said = dict(re.findall(r'<meta (?:name|property)="([\w:]+)" content="([^"<>]+)">', text))
    assert said["og:title"] == explorable.PAGES[name] and f"<title>{said['og:title']}</title>" in text
    assert said["description"] == said["og:description"] and len(said["description"].split()) >= 25
    assert Image.open(ROOT / "docs" / said["og:image"]).size == (1200, 630)
    lesson = ROOT / "docs" / re.search(r'lesson <a href="([^"]+)"', text)[1]
    assert nbformat.read(lesson, as_version=4).cells[0].source.startswith(f"# {explorable.LESSON_OF[name][1]}")
    assert re.search(rf'[("]../docs/{name}.html[)"\\]', lesson.read_text(encoding="utf-8"))


def test_sources_are_small_and_type_no_result():
    """No lead over FedBuff, which the build reads from docs/findings.md, stands in a source."""
    rows = [row for rows in explorable.evidence.leads(FINDINGS).values() for row in rows]
    typed = {f"{row[kind][0]:+.1f}".replace("-", "−") for row in rows for kind in explorable.evidence.COLUMNS}
    for path in (ROOT / "docs/explorable").rglob("*.*s"):
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 250, path
        assert not [number for number in typed if number in text], path


def test_evidence_is_what_findings_say():
    leads = explorable.evidence.leads(FINDINGS)
    assert [row["setting"] for row in leads["KUIPER"]] == ["bias 0", "bias 0.8", "bias 1"]
    last = leads["KUIPER"][-1]
    printed = [f"{lead:+.1f} [{low:.1f}, {high:.1f}]" for lead, low, high in map(last.get, explorable.evidence.COLUMNS)]
    assert f"| KUIPER, bias 1 | {last['paper']} | {' | '.join(printed)} |".replace("-", "−") in FINDINGS
    changed = FINDINGS.replace("| FedADT | +1.3 | +5.6 [", "| FedADT | +1.3 | +99.9 [")
    assert explorable.evidence.leads(changed)["FedADT"][0]["plain"][0] == 99.9
    assert set(explorable.METHOD_OF.values()) <= leads.keys()
    for path in FILES.values():
        assert json.dumps(leads) in path.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="no table of leads"):
        explorable.evidence.leads(FINDINGS.replace("|", "/"))


# --- in a browser -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chromium():
    """A page of a browser."""
    if not (executable := browser.find_browser()):
        pytest.skip("no browser: install Chromium or Chrome, or name one in ASYNCFL_BROWSER")
    with browser.browser_page(executable) as page:
        page.emulate_media(reduced_motion="no-preference")
        yield page


@pytest.fixture
def opened(chromium):
    """A function that opens a step of a page; what pages said on the console, threw or asked for must be nothing."""
    said: list[str] = []
    own = [path.as_uri() for path in FILES.values()]
    hooks = {
        "console": lambda message: said.append(message.text),
        "pageerror": lambda error: said.append(str(error)),
        "request": lambda request: said.append(request.url) if request.url.split("?")[0] not in own else None,
    }
    for event, hook in hooks.items():
        chromium.on(event, hook)

    def open_step(name="explore", step=1, query=""):
        chromium.goto("about:blank")
        said.clear()
        chromium.goto(f"{FILES[name].as_uri()}{query}#{step}")
        return chromium

    yield open_step
    for event, hook in hooks.items():
        chromium.remove_listener(event, hook)
    assert said == []


@pytest.fixture
def page(opened):
    """The main page."""
    return opened()


def to_its_end(page, bet: int = 0) -> None:
    """Bet, and skip from stop to stop until the step has ended."""
    page.locator("#bet button").nth(bet).click()
    while not page.evaluate("story.finished"):
        before = page.evaluate("story.stop")
        page.locator("#skip").click()
        page.wait_for_function(f"story.stop > {before}", timeout=300_000)


# --- its arithmetic is the library's ----------------------------------------------------------------


METHODS = {
    "fedbuff": ({"server_lr": 0.7}, {"step": 0.7}),
    "fedasync": ({"settings": {"mixing": 0.5}, "buffer_size": 1}, {"mixing": 0.5}),
    "fedecho": (
        {"server_lr": 0.7, "settings": {"distill_set": "natural", "distill_samples": 30, "distill_batch_size": 20,
                                        "distill_q": 2, "distill_lr": 1e-3}},
        {"step": 0.7, "distillRate": 1e-3},
    ),
    "kuiper": ({"settings": {"mixing": 0.7}}, {"mixing": 0.7}),
    "fedadt": (
        {"buffer_size": 1, "rounds": 12, "settings": {"kd_lr": 0.2, "alpha_min": 0.2, "alpha_max": 0.6, "alpha_versions": 1000, "kd_fraction": 0.03, "kd_batch_size": 16}},
        {"distillRate": 0.2},
    ),
    "fedrevive": (
        {"buffer_size": 1, "rounds": 24, "server_lr": 0.3,
         "settings": {"generator_lr": 1e-2, "latent_lr": 1e-2, "adversarial_from": 10**6, "alpha_feat": 0.0, "freeze_rounds": 3, "synthesis_only_rounds": 6,
                      "s_max": 6, "k_synth": 3, "nz": 8, "ngf": 8, "kd_lr": 1e-3, "kd_batch_size": 4,
                      "k_kd": 3, "num_teachers": 4}},
        {"step": 0.3, "frozenUntil": 3, "silentUntil": 6, "every": 4, "sMax": 6, "generatorRate": 1e-2, "latentRate": 1e-2, "synthesisSteps": 3, "teachers": 4,
         "distillRate": 1e-3, "distillSteps": 3},
    ),
}  # fmt: skip


def walked(method: str, monkeypatch) -> tuple[dict, list[dict]]:
    """Run a method in the library; return what the page must be told, and what comes of every arrival.

    FedRevive's generator is that for vectors, and of its three losses the target loss alone counts, as on the page.
    """
    settings, of_page = METHODS[method]
    passes, drawn = [], {"probes": [], "labels": [], "latents": [], "batches": []}
    monkeypatch.setattr(synthesis, "image_generator", synthesis.vector_generator)
    monkeypatch.setattr(fedrevive.FedRevive, "t_gen", 4)
    monkeypatch.setattr(fedrevive.FedRevive, "synth_batch_size", 12)
    true_probes, draw_batches = fedrevive.probe_inputs, SampleSet.minibatches
    monkeypatch.setattr(
        fedrevive, "probe_inputs", lambda *given, **more: kept(drawn["probes"], true_probes(*given, **more))
    )

    def minibatches(samples, rng, **how):
        batches = draw_batches(samples, rng, **how)
        passes.append([part.tolist() for part in batches.indices.split(batches.sizes)])
        return batches

    monkeypatch.setattr(SampleSet, "minibatches", minibatches)
    session = Run(Config(**{
        "task": "digits", "model": "mlp", "model_settings": {"hidden": [32]}, "clients": 12, "concurrency": 6,
        "buffer_size": 3, "algorithm": method, "delay": "fedecho_mild", "alpha": 0.3, "rounds": 8, "client_lr": 0.2,
        "local_epochs": 2, "batch_size": 10, "weight_decay": 0.0, "eval_every": 8, "seed": 3, **settings,
    }))  # fmt: skip
    server, jobs, arrivals = session.algorithm, {}, []
    plan, receive = session.trainer.plan, server.receive
    extra, extra_labels, generator = [], [], None

    def planned(job):
        work = plan(job)
        batches = [[int(index) for index in row if index >= 0] for row in work.indices]
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
        extra = server.context.unlabelled("natural", 30).flatten(1).tolist()
    if method == "fedadt":
        inputs, labels = server.context.labelled
        extra, extra_labels = inputs.flatten(1).tolist(), labels.tolist()
    if method == "fedrevive":
        maker, draw = server.synthesiser.maker, server.pool.draw
        maker_latents = maker.latents
        maker.latents = lambda labels, *rest: kept(
            drawn["latents"], maker_latents(kept(drawn["labels"], labels), *rest)
        )
        server.pool.draw = lambda *given: kept(drawn["batches"], draw(*given))
        generator = {
            "nz": 8,
            "hidden": 16,
            "low": server.spec.low,
            "high": server.spec.high,
            "theta": server.synthesiser.theta.tolist(),
        }
    start = server.x.tolist()
    session.finish()
    given = {
        "method": method, "settings": {"buffer": 3, **of_page}, "x": start, "parts": [part.tolist() for part in session.parts],
        "images": session.task.inputs.flatten(1).tolist(), "labels": session.task.labels.tolist(), "concurrency": 6,
        "jobs": [jobs.get(number) for number in range(max(jobs) + 1)], "passes": passes, "drawn": drawn, "generator": generator,
        "extra": extra, "extraLabels": extra_labels, "arrivals": len(arrivals),
    }  # fmt: skip
    return given, arrivals


def kept(into: list, drawn):
    """Note what was drawn, and return it."""
    into.append([part.flatten().tolist() for part in drawn] if isinstance(drawn, list) else drawn.tolist())
    return drawn


WALK = """given => {
    const net = network(64, 32, 10), jobs = given.jobs, drawn = given.drawn, own = {};
    const images = Float64Array.from([...given.images, ...given.extra].flat());
    const extra = given.extra.map((_, i) => given.images.length + i);
    const data = {images, labels: Uint8Array.from([...given.labels, ...given.extraLabels])};
    let next = 0, pass = 0;
    if (given.generator) {
        const {nz, hidden, low, high, theta} = given.generator;
        const numbers = (rows) => Float64Array.from(rows.flat(9));
        Object.assign(own, {generator: generator(nz, hidden, 64, low, high), theta: Float64Array.from(theta), draws: {
            probes: () => numbers(drawn.probes.shift()), labels: () => drawn.labels.shift(), batches: () => drawn.batches.shift(),
            latents: () => { const [noise, embeddings] = drawn.latents.shift(); return {noise: numbers(noise), embeddings: numbers(embeddings)}; }}});
    }
    const server = new METHODS[given.method](Float64Array.from(given.x), {
        net, data, unlabelled: extra, labelled: extra, minibatches: () => given.passes[pass++], ...given.settings, ...own});
    const clock = new Simulation({net, data, parts: given.parts, server, concurrency: given.concurrency, rate: 0.2, hooks: {
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
def test_its_arithmetic_is_the_librarys(page, method, monkeypatch):
    """Who arrives, how stale, every update and every version: the library's in single precision, the page's in double.

    They agree to 1e-4. FedADT's clients turn a rounding into a unit that is on or off: its 12 versions agree to 5e-4.
    """
    given, ours = walked(method, monkeypatch)
    theirs = page.evaluate(WALK, given)
    assert len(ours) == len(theirs) >= 8
    for mine, its in zip(ours, theirs, strict=True):
        assert {name: mine[name] for name in ("client", "staleness", "version")} == {
            name: its[name] for name in ("client", "staleness", "version")
        }
        close = 5e-4 if method == "fedadt" else 1e-4
        assert its["delta"] == pytest.approx(mine["delta"], abs=close)
        assert its["x"] == pytest.approx(mine["x"], abs=close)  # Adam divides by the smallest gradients
    moved = max(abs(a - b) for a, b in zip(ours[-1]["x"], given["x"], strict=True))
    assert moved > 0.1  # which is far more than the tolerance
    if method == "fedecho":
        assert len(given["passes"]) == ours[-1]["version"]
    if method == "fedadt":
        assert len(given["passes"]) >= 5
    if method == "fedrevive":
        assert len(given["drawn"]["latents"]) >= 3 and len(given["drawn"]["batches"]) >= 5


# --- its steps --------------------------------------------------------------------------------------

GAP = """seed => {
    const [one, third] = [1, 0.3].map(step => { const run = new Run({step, seed}, DIGITS); run.advance(60); return run; });
    return [one.level(), third.level()];
}"""


@pytest.mark.long
def test_one_number_makes_ten_points_on_ten_seeds(page):
    """The fourth step's two servers after a minute: FedBuff at the server learning rates 1 and 0.3."""
    ends = [page.evaluate(GAP, seed) for seed in range(10)]
    gaps = [third - one for one, third in ends]
    print("rate 1, rate 0.3, gap:", *(f"{one:.1f} {third:.1f} {third - one:+.1f};" for one, third in ends))
    assert min(gaps) >= 10 and statistics.mean(gaps) >= 10
    assert min(third for _, third in ends) >= 75  # the lead is not that of one bad model over another


@pytest.mark.long
def test_step_four_shows_what_its_runs_give(opened):
    page = opened("explore", 4)
    settings = page.evaluate("story.runs.map(run => run.settings)")
    assert [one.pop("step") for one in settings] == [1, 0.3] and settings[0] == settings[1]
    to_its_end(page, bet=1)
    one, third = page.evaluate("story.runs.map(run => run.level())")
    said = page.locator("#results").inner_text()
    assert third - one >= 10 and f"{third - one:.1f} points" in said and "Your bet was right" in said
    assert page.evaluate("story.time") == 60


STEPS = [("explore", step) for step in range(1, 6)] + [
    (name, step) for name in explorable.METHOD_OF for step in (1, 2, 3)
]


@pytest.mark.long
@pytest.mark.parametrize("name, step", STEPS)
def test_a_step_waits_for_a_bet_and_ends_at_its_event(opened, name, step):
    page = opened(name, step)
    assert page.locator("#play").is_disabled() and page.locator("#results").inner_text() == ""
    to_its_end(page)
    said = page.locator("#results").inner_text()
    assert re.search(r"Your bet was right|You bet on", said) and "NaN" not in said and "undefined" not in said
    assert page.locator("#play").is_disabled() and not page.evaluate("story.playing")


@pytest.mark.parametrize("name", explorable.METHOD_OF)
def test_a_methods_page_ends_with_our_evidence_in_a_picture_and_a_sentence(opened, name):
    """KUIPER's names the bias of its paper beside bias 0; a lead whose interval holds zero is no lead."""
    page, method = opened(name), explorable.METHOD_OF[name]
    page.locator("#steps button").last.click()
    rows = explorable.evidence.leads(FINDINGS)[method]
    said, read = page.locator("#text").inner_text(), page.locator("canvas").get_attribute("aria-label")
    for row in [rows[0], rows[-1]]:
        sentence = next(part for part in said.split("\n") if row["setting"] in part)
        for lead, low, high in (row["plain"], row["tuned"]):
            where = "above" if lead > 0 else "below"
            assert (f"{abs(lead):.1f} points {where}" if low * high > 0 else "e cannot distinguish") in sentence
        assert sentence.count("cannot distinguish") <= 1, "said once"
        assert f"both tuned {row['tuned'][0]:+.1f}".replace("-", "−") in read
        assert not row["paper"] or f"The paper reports {row['paper']}." in sentence


def picture(page) -> str:
    return page.evaluate("Array.from(document.querySelectorAll('#panels canvas'), c => c.toDataURL()).join()")


def test_every_knob_and_method_moves_the_picture(opened):
    page = opened("explore", 6)
    page.evaluate("story.play(false); story.forward(5); story.draw()")
    seen = [picture(page)]
    for name in ("step", "slow", "flight", "buffer", "alpha"):
        slider = page.locator(f"#knob-{name} input")
        before = page.locator(f"#knob-{name} output").text_content()
        slider.focus()
        page.keyboard.press("Home")
        assert page.locator(f"#knob-{name} output").text_content() != before
        page.evaluate("story.play(false); story.forward(story.time + 10); story.draw()")
        seen.append(picture(page))
    for name in ("FedAsync", "FedEcho", "KUIPER", "FedBuff"):
        page.get_by_text(name, exact=True).click()
        page.evaluate("story.play(false); story.forward(story.time + 10); story.draw()")
        seen.append(picture(page))
    assert len(set(seen)) == len(seen)
    colours = [page.evaluate("story.runs.map(run => run.colour)")]
    assert len(set(colours[0])) == len(colours[0]) == 4  # each run keeps its method's colour


def test_the_clock_runs_after_a_bet_and_the_keyboard_stops_it(page):
    page.evaluate("new Promise(done => setTimeout(done, 300))")
    assert page.evaluate("story.time") == 0
    page.locator("#bet button").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("story.time > 0.5")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Space")
    assert page.evaluate("story.playing") is False
    page.keyboard.press("ArrowRight")
    assert page.locator("h2").inner_text() == "2. The model you left"
    page.keyboard.press("ArrowLeft")
    assert page.url.endswith("#1")


def test_without_motion_a_bet_goes_straight_to_the_event(chromium, opened):
    chromium.emulate_media(reduced_motion="reduce")
    page = opened("explore_kuiper", 1)
    page.locator("#bet button").first.click()
    page.wait_for_function("story.finished", timeout=120_000)
    assert not page.evaluate("story.playing") and "Five bursts" in page.locator("#results").inner_text()
    chromium.emulate_media(reduced_motion="no-preference")


def test_before_a_bet_a_ghost_shows_how_a_step_begins_and_not_its_event(opened):
    """FedRevive's event, its first images, comes early."""
    page = opened("explore_fedrevive")
    page.evaluate("story.haunt(0); story.haunt(1)")
    assert page.evaluate("story.ghosts[0].now > 0 && story.time === 0")
    page.evaluate("story.speed = 1000; for (let i = 0; i < 5; i++) story.haunt(1)")
    assert "Nothing is made up yet" in page.locator("#panels canvas").first.get_attribute("aria-label")
    assert page.evaluate("story.draw(), getComputedStyle(document.querySelector('#panels canvas')).opacity") == "0.35"
    page.locator("#bet button").first.click()
    page.wait_for_function("getComputedStyle(document.querySelector('#panels canvas')).opacity === '1'")


def test_in_a_notebooks_frame_the_first_step_plays_by_itself(chromium, tmp_path):
    """The frame's address leads from notebooks/ to the page; without frames a picture stays."""
    shown = explorable_frame()._repr_html_()
    assert re.search(r'<img src="data:image/svg[^>]*alt="[^"]{40,}"', shown)
    address = re.search(r'<iframe[^>]* src="([^"]+)"', shown)[1]
    assert (ROOT / "notebooks" / address).resolve() == FILES["explore"]
    (tmp_path / "frame.html").write_text(shown.replace(address, FILES["explore"].as_uri()))
    chromium.goto((tmp_path / "frame.html").as_uri())
    frame = next(one for one in chromium.frames if one.url.startswith(FILES["explore"].as_uri()))
    frame.wait_for_function("story.time > 0.5")
    assert frame.locator("#bet button").first.is_enabled()
    frame.evaluate("story.step.stops[0].until = () => true")
    frame.wait_for_function("story.finished")
    assert frame.locator("#bet button").count() == 0 and "versions" in frame.locator("#results").inner_text()


WORDS = """() => {
    window.written = new Map();
    const {fillText, clearRect} = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.clearRect = function (...where) {
        written.set(this.canvas, []);
        clearRect.apply(this, where);
    };
    CanvasRenderingContext2D.prototype.fillText = function (words, x, y) {
        const m = this.measureText(words);
        written.get(this.canvas).push({words, left: x - m.actualBoundingBoxLeft, right: x + m.actualBoundingBoxRight,
            top: y - m.actualBoundingBoxAscent, bottom: y + m.actualBoundingBoxDescent});
        fillText.call(this, words, x, y);
    };
}"""
"""Have every canvas keep which words are written where, since it was last cleared."""
ILLEGIBLE = """() => [...written].filter(([canvas]) => canvas.isConnected).flatMap(([canvas, all]) => {
    const {width, height} = canvas.getBoundingClientRect();
    const cut = all.filter(one => one.left < -1 || one.top < -1 || one.right > width + 1 || one.bottom > height + 1);
    const over = all.filter((one, i) => all.slice(i + 1).some(other => one.left < other.right - 1 &&
        other.left < one.right - 1 && one.top < other.bottom - 1 && other.top < one.bottom - 1));
    return [...cut, ...over].map(one => one.words);
})"""
"""Words that are cut off, or lie over others."""
STORED = """() => {
    const clients = 30, every = [...Array(clients).keys()], run = {
        server: {logits: new Map(every.map(client => [client, new Float64Array(1500)])), version: 123},
        heardAt: new Map(every.map(client => [client, client])), isSlow: client => client >= 20, colour: "#029e73",
        settings: {clients, slowClients: 10, unlabelled: 150}, data: {server: [...Array(150).keys()], labels: Array(150).fill(0)},
    };
    storePicture.draw(document.querySelector("#panels canvas"), [run]);
}"""
"""Draw FedEcho's store with ten slow devices heard, as it is late in a run."""


@pytest.mark.parametrize("name", FILES)
def test_on_a_phone_every_step_fits_is_legible_and_has_its_picture_on_top_with_words(opened, name):
    """No word of a picture is cut or lies over another, and what pictures show is said."""
    page = opened(name)
    page.evaluate(WORDS)
    top = "document.querySelector('#panels canvas').getBoundingClientRect().top"
    said = "Array.from(document.querySelectorAll('#panels canvas'), c => c.getAttribute('aria-label'))"
    for width, step in ((width, step) for width in (360, 390) for step in range(page.evaluate("story.steps.length"))):
        page.set_viewport_size({"width": width, "height": 780 if width == 360 else 844})
        page.evaluate(f"story.open({step}); story.play(false); scrollTo(0, 0)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert all(len(label.split()) >= 4 and "NaN" not in label for label in page.evaluate(said))
        if width == 390:
            assert 0 < page.evaluate(top) <= 300
            page.locator(".walk").scroll_into_view_if_needed()
            assert 0 < page.evaluate(top) <= 300, "it stays there"
            assert page.evaluate(ILLEGIBLE) == [], step
            if page.locator("#bet button").count():  # the run itself, in place of the ghost before it
                page.locator("#bet button").first.click()
                page.evaluate("story.play(false)")
                assert page.evaluate(ILLEGIBLE) == [], step
    page.evaluate("story.open(0); story.play(false); scrollTo(0, 1e4)")
    if name == "explore_fedecho":
        page.evaluate(STORED)
        assert page.evaluate(ILLEGIBLE) == []
    page.locator("#after").click()
    assert page.evaluate("[scrollY, story.at]") == [0, 1]
    page.set_viewport_size({"width": 1240, "height": 900})


@pytest.mark.parametrize("name", FILES)
def test_without_scripts_it_shows_a_still_picture_and_says_what_to_press(chromium, name):
    page = chromium.context.browser.new_page(java_script_enabled=False, viewport={"width": 390, "height": 844})
    page.goto(FILES[name].as_uri())
    assert "press Trust HTML" in page.locator("noscript .told").inner_text()
    box = page.locator("noscript svg").bounding_box()
    assert box["width"] <= 390 and box["height"] >= 90 and box["y"] <= 300
    assert not page.locator("#play").is_visible() and not page.locator("#theme").is_visible()
    page.close()


def test_it_follows_the_systems_theme_and_the_readers(chromium, opened):
    ground = "getComputedStyle(document.body).backgroundColor"
    page = opened()
    light = page.evaluate(ground)
    chromium.emulate_media(color_scheme="dark")
    dark = page.evaluate(ground)
    page.locator("#theme").click()
    assert light != dark and page.evaluate(ground) == light
    chromium.emulate_media(color_scheme="light")
    assert opened(query="?theme=dark").evaluate(ground) == dark


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", FILES)
def test_axe_finds_nothing_serious(opened, name, scheme):
    page = opened(name, query=f"?theme={scheme}")
    for step in range(page.evaluate("story.steps.length")):
        page.evaluate(f"story.open({step}); story.play(false)")
        assert browser.serious(page) == {}

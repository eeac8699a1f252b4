// A story in steps. A step sets up its runs, asks for a bet, runs until its event, pauses there and says what happened.
// A step: {name, text, panels, speed, end, runs() → [Run], bet: {question, options, answer(runs)}, stops: [{until(run), result(runs)}]}.
// Where a stop has no `until`, it is the time `end`. A step with `knobs` is free: it has no bet and no stop.
// Before the bet, a faint ghost shows how the step begins. In a frame, the first step plays without a bet.

const $ = (id) => document.getElementById(id);
const fragment = (html) => document.createRange().createContextualFragment(html);

class Story {
  constructor(steps) {
    Object.assign(this, {steps, playing: false, still: matchMedia("(prefers-reduced-motion: reduce)").matches});
    steps.forEach((step, i) => {
      const button = fragment(`<li><button type="button"><b>${i + 1}</b> <span>${step.name}</span></button></li>`);
      button.querySelector("button").addEventListener("click", () => this.open(i));
      $("steps").append(button);
    });
    $("play").addEventListener("click", () => this.play(!this.playing));
    $("skip").addEventListener("click", () => this.skip());
    $("again").addEventListener("click", () => this.open(this.at));
    const walk = (by) => { this.open(this.at + by); scrollTo(0, 0); };
    $("before").addEventListener("click", () => walk(-1));
    $("after").addEventListener("click", () => walk(1));
    $("speed").addEventListener("change", () => { this.speed = Number($("speed").value); });
    document.addEventListener("keydown", (event) => this.key(event));
    addEventListener("resize", () => this.draw());
    addEventListener("hashchange", () => this.fromHash());
    this.fromHash();
    this.loop();
  }
  get step() { return this.steps[this.at]; }
  fromHash() {
    const asked = Number(location.hash.slice(1)) - 1;
    if (asked !== this.at) this.open(this.steps[asked] ? asked : 0);
  }
  key(event) {
    if (event.target.closest?.("input, select, button, a, summary") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && !$("play").disabled) { event.preventDefault(); this.play(!this.playing); }
    if (event.key === "ArrowRight" && this.at < this.steps.length - 1) this.open(this.at + 1);
    if (event.key === "ArrowLeft" && this.at > 0) this.open(this.at - 1);
  }

  // --- a step --------------------------------------------------------------------------------------------------------

  open(i) {
    this.play(false);
    Object.assign(this, {at: i, stop: 0, chosen: null, ghosts: [], rounds: 0, haunted: 0, speed: this.steps[i].speed ?? 2, working: 0});
    const step = this.step;
    this.unasked = i === 0 && window.top !== window && !this.still;
    this.runs = step.runs();
    if (location.hash !== `#${i + 1}`) history.replaceState(null, "", `#${i + 1}`);
    document.querySelectorAll("#steps button").forEach((button, k) => button.toggleAttribute("aria-current", k === i));
    document.querySelector("#steps [aria-current]").setAttribute("aria-current", "step");
    $("speed").value = String(this.speed);
    $("name").textContent = `${i + 1}. ${step.name}`;
    $("text").innerHTML = step.text(this.runs);
    $("results").replaceChildren();
    $("bet").replaceChildren();
    $("knobs").replaceChildren();
    $("buttons").hidden = Boolean(step.reading);
    $("now").textContent = "";
    document.querySelector("main").classList.toggle("begun", i > 0);
    $("before").disabled = i === 0;
    $("after").disabled = i === this.steps.length - 1;
    $("after").classList.remove("next");
    this.showPanels();
    if (step.bet) this.ask();
    step.knobs?.(this);
    $("skip").hidden = Boolean(step.knobs || step.reading);
    this.showButtons();
    this.draw();
    if (this.unasked || (step.knobs && !step.reading && !this.still)) this.play(true);
  }
  showPanels() {
    $("panels").replaceChildren(...this.step.panels.map((panel) => fragment(`<figure class="panel ${panel.size ?? ""}">
      <figcaption><h3>${panel.title}</h3></figcaption><canvas role="img" tabindex="-1"></canvas><p class="note">${panel.note()}</p></figure>`)));
  }
  ask() {
    const {question, options} = this.step.bet;
    $("bet").append(fragment(`<fieldset><legend>Your bet. <span>${question}</span></legend>
      ${options.map((option) => `<button type="button" aria-pressed="false">${option}</button>`).join("")}</fieldset>`));
    $("bet").querySelectorAll("button").forEach((button, k) => button.addEventListener("click", () => this.choose(k)));
  }
  choose(k) {
    this.chosen = k;
    $("bet").querySelectorAll("button").forEach((button, i) => {
      button.setAttribute("aria-pressed", String(i === k));
      button.disabled = true;
    });
    this.showButtons();
    if (this.still) this.skip(); else this.play(true);
  }
  get waitsForBet() { return Boolean(this.step.bet) && this.chosen === null && !this.unasked; }
  get finished() { return !this.step.knobs && this.stop >= (this.step.stops?.length ?? 0); }
  play(on) {
    this.playing = on && !this.waitsForBet && !this.finished;
    this.working++;  // ends a skip that is under way
    this.showButtons();
  }
  showButtons() {
    if (this.at === undefined) return;
    const idle = this.waitsForBet || this.finished;
    $("play").disabled = $("skip").disabled = idle;
    $("play").textContent = this.playing ? "Pause" : this.stop && !idle ? "Go on" : "Play";
    $("hint").textContent = this.waitsForBet ? "Place your bet, and the clock starts." : "";
  }

  // --- the clock -----------------------------------------------------------------------------------------------------

  get live() { return this.runs.filter((run) => !run.past); }
  get time() { return Math.min(...this.live.map((run) => run.now)); }
  // Let all runs go on to a time; the first one may stop earlier, at its event, and the others with it. True at a stop.
  forward(time, budget) {
    const {until} = this.step.stops?.[this.stop] ?? {}, end = this.step.knobs ? Infinity : this.step.end ?? Infinity;
    let target = Math.min(end, time);
    const [first, ...others] = this.live, happened = first.advance(target, {budget, until});
    if (happened) target = first.now;
    for (const run of others) run.advance(target, {budget: happened ? Infinity : budget});
    return happened || (!until && this.time >= end);
  }
  haunt(passed) {  // show how the step begins, three times, but never its event
    const {step} = this, end = (step.end ?? 40) / 6, {until} = step.stops[0];
    this.haunted += passed * this.speed;
    const met = this.ghosts.some((ghost) => ghost.now < end && ghost.advance(Math.min(end, this.haunted), {budget: 10 / this.ghosts.length, until}));
    if (this.ghosts.length && !met && this.haunted < 1.5 * end) return this.draw();
    if (this.rounds++ < 3) Object.assign(this, {ghosts: step.runs(), haunted: 0});
  }
  loop() {
    let before = performance.now();
    const frame = (now) => {
      const passed = Math.min(0.1, (now - before) / 1000);
      before = now;
      if (this.playing && !document.hidden) {
        const ahead = Math.max(...this.live.map((run) => run.now));
        if (this.forward(Math.max(ahead, this.time + passed * this.speed), 14 / this.live.length)) this.reached();
        this.draw();
      } else if (this.waitsForBet && !this.still && !document.hidden) this.haunt(passed);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }
  skip() {  // to the event without showing the way, in slices, so that the page stays alive
    this.play(false);
    const mine = ++this.working;
    const slice = () => {
      if (mine !== this.working) return;
      const begun = performance.now();
      let there = false;
      while (!there && performance.now() - begun < 40) there = this.forward(this.time + 0.5);
      $("hint").textContent = there ? "" : `Computing: ${this.time.toFixed(0)} seconds of the devices' time so far.`;
      if (!there) { setTimeout(slice); return; }
      this.reached();
      this.draw();
    };
    slice();
  }
  reached() {
    const {bet, stops} = this.step, {result} = stops[this.stop++], last = this.finished;
    this.play(false);
    let said = result(this.runs);
    if (last && bet && this.chosen !== null) {
      const right = bet.answer(this.runs);
      said = `<p class="verdict">${right === this.chosen ? "Your bet was right" : `You bet on “${bet.options[this.chosen]}”; it was “${bet.options[right]}”`}.</p>${said}`;
    }
    $("results").append(fragment(`<div>${said}</div>`));
    if (last) $("after").classList.add("next");
    if (last && this.chosen === null) $("bet").replaceChildren();
    const told = $("results").lastElementChild;
    if (window.top === window) told.scrollIntoView({block: "nearest"});
    else scrollBy(0, Math.max(0, told.getBoundingClientRect().bottom + 8 - innerHeight));  // the page around stays where it is
    this.showButtons();
  }
  recolour() {  // notes hold swatches, so they are made anew
    this.showPanels();
    this.draw();
  }
  draw() {
    const ghostly = this.waitsForBet && this.ghosts.length > 0, runs = ghostly ? this.ghosts : this.runs;
    $("panels").classList.toggle("ghostly", ghostly);
    document.querySelectorAll("#panels canvas").forEach((canvas, i) => this.step.panels[i].draw(canvas, runs, this.step));
    if (!this.step.reading) $("now").textContent = ghostly ? "how it begins" : `${this.time.toFixed(0)} s, version ${this.runs[0].server.version}`;
  }
}

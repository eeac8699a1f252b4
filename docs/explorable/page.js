// What the page shows and asks; engine.js computes. Numbers that the build puts in: DATA (images, labels, colours).
"use strict";

(() => {
  const {network, forward, softmax, accuracy, SERVERS, Simulation} = Engine;
  const CLIENTS = 30, SLOW = 6, UNLABELLED = 100, RATE = 0.2, EPOCHS = 2, BATCH = 10, DISTILL_RATE = 1e-3, WINDOW = 48;
  const NET = network(64, 32, 10);
  const INK = "#1f2937", SOFT = "#6b7280", LINE = "#e5e7eb", WORKING = "#cbd5e1";
  const $ = (id) => document.getElementById(id);

  // --- data ---------------------------------------------------------------------------------------------------------

  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const pixels = bytes(DATA.images), labels = bytes(DATA.labels), all = Array.from(labels, (_, i) => i);
  const images = Float64Array.from(pixels, (value) => (value / 16 - DATA.mean) / DATA.std);
  const data = {images, labels};
  const TEST = all.slice(DATA.train), FREE = all.slice(DATA.train - UNLABELLED, DATA.train);
  const OWNED = all.slice(0, DATA.train - UNLABELLED);

  // --- random numbers: a stream for each purpose, so that changing one setting moves no other draw ---------------------

  function stream(...names) {  // mulberry32, seeded by FNV-1a of the names
    let state = 2166136261;
    for (const letter of names.join("/")) state = Math.imul(state ^ letter.charCodeAt(0), 16777619);
    return () => {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
  }
  function shuffled(values, random) {
    const copy = [...values];
    for (let i = copy.length - 1; i > 0; i--) {
      const j = Math.floor(random() * (i + 1));
      [copy[i], copy[j]] = [copy[j], copy[i]];
    }
    return copy;
  }
  const normal = (random) => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  function gamma(shape, random) {  // Marsaglia and Tsang 2000; below 1 by a power of a uniform number
    if (shape < 1) return gamma(shape + 1, random) * Math.pow(1 - random(), 1 / shape);
    const d = shape - 1 / 3, c = 1 / Math.sqrt(9 * d);
    for (;;) {
      const x = normal(random), v = (1 + c * x) ** 3;
      if (v > 0 && Math.log(1 - random()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v;
    }
  }
  function cutInBatches(places, size) {
    const cut = [];
    for (let i = 0; i < places.length; i += size) cut.push(places.slice(i, i + size));
    return cut;
  }
  function partition(alpha, seed) {  // each digit's images cut over the devices by Dirichlet(alpha); ten images at least
    const random = stream(seed, "partition"), parts = Array.from({length: CLIENTS}, () => []);
    for (let digit = 0; digit < 10; digit++) {
      const places = shuffled(OWNED.filter((place) => labels[place] === digit), random);
      const shares = parts.map(() => gamma(alpha, random) + 1e-12), sum = shares.reduce((a, b) => a + b);
      let reached = 0, from = 0;
      shares.forEach((share, client) => {
        reached += share / sum;
        const until = client === CLIENTS - 1 ? places.length : Math.floor(reached * places.length);
        parts[client].push(...places.slice(from, until));
        from = until;
      });
    }
    for (const part of parts) {
      while (part.length < BATCH) part.push(parts.reduce((a, b) => (b.length > a.length ? b : a)).pop());
    }
    return parts;
  }
  function firstWeights(seed) {
    const random = stream(seed, "weights"), x = new Float64Array(NET.size);
    x.forEach((_, i) => { x[i] = (2 * random() - 1) / Math.sqrt(i < NET.w2 ? NET.inputs : NET.hidden); });
    return x;
  }

  // --- settings -----------------------------------------------------------------------------------------------------

  const METHODS = {
    fedbuff: ["FedBuff", "step × the mean of the buffer's updates is added to the model."],
    fedasync: ["FedAsync", "every model that arrives is mixed in, the staler the less; there is no buffer."],
    fedecho: ["FedEcho", "as FedBuff; then a few steps towards what all devices last predicted on 100 images without labels."],
    kuiper: ["KUIPER", "a burst of models is mixed in, weighed by the error of the model that each device received; its members wait for the burst."],
  };
  const log = (low, high) => ({min: 0, max: 100, to: (t) => low * (high / low) ** (t / 100), from: (v) => (100 * Math.log(v / low)) / Math.log(high / low)});
  const linear = (min, max) => ({min, max, to: (t) => t, from: (v) => v});
  const short = (v) => (v >= 10 ? v.toFixed(0) : v >= 1 ? v.toFixed(1) : v.toFixed(2));
  const stepOf = (method, step) => (method === "fedasync" || method === "kuiper" ? Math.min(1, step) : step);  // a mixing weight is at most 1
  const SLIDERS = {
    step: {...log(0.05, 1.5), start: 1, name: () => ({fedasync: "mixing weight", kuiper: "mixing weight β"})[set.method] ?? "server's step",
      show: (v) => short(stepOf(set.method, v)), about: () => "how far the model goes on a few devices' word"},
    slow: {...log(1, 60), start: 30, name: () => "slow devices", show: (v) => `${short(v)}×`, about: () => "how long 6 of the 30 take for what others do in 1 to 2"},
    flight: {...linear(1, 30), start: 15, name: () => "in flight", show: (v) => v.toFixed(0), about: () => "how many devices train at a time"},
    buffer: {...linear(1, 15), start: 5, name: () => (set.method === "kuiper" ? "burst" : "buffer"), show: (v) => v.toFixed(0), about: () => (set.method === "fedasync" ? "FedAsync has none" : "how many updates make a version")},
    alpha: {...log(0.05, 10), start: 0.1, name: () => "label skew α", show: short, about: () => (set.alpha < 0.3 ? "a device has few of the digits" : set.alpha < 2 ? "devices have some digits more" : "all devices have all digits") + "; begins again"},
  };
  const set = {method: "fedbuff", seed: 5, ...Object.fromEntries(Object.entries(SLIDERS).map(([name, one]) => [name, one.start]))};
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches, MOST_MARKS = 8;
  let run, past = [], playing = !still;

  // --- a run --------------------------------------------------------------------------------------------------------

  function begin(ahead = true) {  // paused, a new run goes a little ahead, so that there is a picture of it
    if (run && run.curve.length > 3) {
      past = past.filter((other) => other.method !== run.method || other.step !== run.step).slice(-3);
      past.push({method: run.method, curve: run.curve, step: run.step});
    }
    const parts = partition(set.alpha, set.seed), pick = stream(set.seed, "choice"), x = firstWeights(set.seed);
    const passes = stream(set.seed, "distillation"), order = FREE.map((_, i) => i);
    const settings = {net: NET, data, unlabelled: FREE, distillRate: DISTILL_RATE, buffer: set.buffer, step: set.step, mixing: stepOf("fedasync", set.step),
      minibatches: () => [0, 1].flatMap(() => cutInBatches(shuffled(order, passes), 25))};
    const hooks = {
      choose: (idle) => idle[Math.floor(pick() * idle.length)],
      duration: (client, job) => {
        const u = stream(set.seed, "duration", client, job.number)();
        return client >= CLIENTS - SLOW ? set.slow * (1 + 0.5 * u) : 1 + u;
      },
      batches: (client, job) => {
        const random = stream(set.seed, "batches", client, job.number);
        return Array.from({length: EPOCHS}, () => cutInBatches(shuffled(parts[client], random), BATCH)).flat();
      },
    };
    const server = new SERVERS[set.method](x, settings);
    run = {method: set.method, step: set.step, server, parts, done: [], marks: [], curve: [], tested: 0, every: 1, now: 0, heard: new Map(), last: null,
      clock: new Simulation({net: NET, data, parts, server, concurrency: set.flight, rate: RATE, hooks})};
    run.slowDigits = Array.from({length: 10}, (_, digit) => {
      const count = (some) => some.flat().filter((place) => labels[place] === digit).length;
      return count(parts.slice(CLIENTS - SLOW)) > 0.5 * count(parts);
    });
    evaluate();
    if (!playing && ahead) advance(12, Infinity);
    draw();
  }
  function evaluate() {
    run.last = accuracy(NET, run.server.x, data, TEST);
    if (run.tested++ % run.every === 0) run.curve.push([run.clock.time, run.last.all]);
    if (run.curve.length > 1200) {  // from now on half as many points, as many early as late
      run.curve = run.curve.filter((_, i) => i % 2 === 0);
      run.every *= 2;
    }
  }
  function advance(until, budget) {  // the clock goes on to a time, or as far as milliseconds allow
    const begun = performance.now();
    for (;;) {
      const next = Math.min(...run.clock.jobs.map((job) => job.until));
      if (next > until) { run.now = until; return; }
      const {update, job, made} = run.clock.next();
      run.now = job.until;
      run.done.push({client: job.client, from: job.from, until: job.until, staleness: update.staleness});
      run.heard.set(job.client, run.server.version);
      if (made) evaluate();
      if (performance.now() - begun > budget) break;
    }
    run.done = run.done.filter((job) => job.until > run.now - WINDOW - 1);
  }
  function changed(name) {  // a setting that can change while the run goes on
    run.step = run.server.settings.step = set.step;
    run.server.settings.mixing = stepOf("fedasync", set.step);
    run.server.settings.buffer = set.buffer;
    run.clock.concurrency = set.flight;
    run.marks = run.marks.filter(([time]) => run.now - time > 0.02 * run.now);
    run.marks = [...run.marks, [run.now, `${SLIDERS[name].name()} ${SLIDERS[name].show(set[name])}`]].slice(-MOST_MARKS);
    draw();
  }

  // --- pictures -----------------------------------------------------------------------------------------------------

  function canvas(id, describe) {
    const element = $(id), {width, height} = element.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
    if (element.width !== Math.round(width * scale)) element.width = Math.round(width * scale);
    if (element.height !== Math.round(height * scale)) element.height = Math.round(height * scale);
    const g = element.getContext("2d");
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.clearRect(0, 0, width, height);
    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "middle";
    element.setAttribute("aria-label", describe);
    return {g, width, height};
  }
  function text(g, words, x, y, colour = SOFT, align = "left") {
    g.fillStyle = colour;
    g.textAlign = align;
    g.fillText(words, x, y);
  }
  function shade(staleness) {  // yellow is fresh, the darker the staler, as in the package's timelines
    const scale = DATA.staleness, place = Math.min(1, Math.log1p(staleness) / Math.log1p(60)) * (scale.length - 1);
    return scale[Math.round(place)];
  }
  const percent = (value) => `${(100 * value).toFixed(0)}%`;

  function drawClock() {
    const stale = run.done.map((job) => job.staleness), mean = stale.length ? stale.reduce((a, b) => a + b) / stale.length : 0;
    const {g, width, height} = canvas("clock", `Timeline of ${CLIENTS} devices; ${run.clock.jobs.length} train now, the last updates were ${mean.toFixed(1)} versions late on average.`);
    const left = 74, bottom = 18, row = (height - bottom) / CLIENTS, from = Math.max(0, run.now - WINDOW);
    const at = (time) => left + ((time - from) / WINDOW) * (width - left - 8);
    g.fillStyle = "#fff7ed";
    g.fillRect(0, (CLIENTS - SLOW) * row, width, SLOW * row);
    text(g, "24 quick", 4, ((CLIENTS - SLOW) * row) / 2);
    text(g, "6 slow", 4, (CLIENTS - SLOW / 2) * row);
    for (let time = Math.ceil(from / 10) * 10; time < from + WINDOW && at(time) < width - 100; time += 10) {
      g.fillStyle = LINE;
      g.fillRect(at(time), 0, 1, height - bottom);
      text(g, time.toFixed(0), Math.max(at(time), left + 4), height - 8, SOFT, "center");
    }
    const bar = (job, until, colour) => {
      const begin = Math.max(left, at(job.from)), end = Math.min(width, at(until));
      if (end < left) return;
      g.fillStyle = colour;
      g.fillRect(begin, job.client * row + 1, Math.max(1, end - begin - 1), row - 2);
    };
    for (const job of run.done) bar(job, job.until, shade(job.staleness));
    for (const job of run.clock.jobs) bar(job, run.now, WORKING);
    g.fillStyle = INK;
    g.fillRect(at(run.now), 0, 1.5, height - bottom);
    text(g, "virtual time →", width - 4, height - 8, SOFT, "right");
  }
  function drawServer() {
    const {server, clock} = run, size = server.settings.buffer, waits = run.method === "fedasync" ? [] : server.buffer;
    const recent = run.done.slice(-50), mean = recent.length ? recent.reduce((sum, job) => sum + job.staleness, 0) / recent.length : 0;
    $("numbers").innerHTML = `<b>${server.version}</b> versions, <b>${clock.arrivals}</b> updates, lately <b>${mean.toFixed(1)}</b> versions late on average`;
    $("rule").textContent = `${METHODS[run.method][0]}: ${METHODS[run.method][1]}`;
    const slots = run.method === "fedasync" ? 0 : size;
    const {g, width} = canvas("buffer", slots ? `${waits.length} of ${size} updates wait in the buffer.` : "No buffer.");
    if (!slots) { text(g, "no buffer: every update makes a version", 4, 28); return; }
    const box = Math.min(46, (width - 8) / slots - 4);
    for (let i = 0; i < slots; i++) {
      const update = waits[i], x = 4 + i * (box + 4);
      g.fillStyle = update ? shade(update.staleness) : "#f1f5f9";
      g.fillRect(x, 4, box, box);
      g.strokeStyle = "#cbd5e1";
      g.strokeRect(x, 4, box, box);
      if (update && box > 22) text(g, String(update.staleness), x + box / 2, 4 + box / 2, update.staleness > 12 ? "#fff" : INK, "center");
    }
  }
  function drawAccuracy() {
    const {g, width, height} = canvas("accuracy", `Accuracy over virtual time, now ${percent(run.last.all)} with ${METHODS[run.method][0]}.`);
    const left = 36, right = 88, bottom = 18, end = Math.max(20, run.now, ...past.map((one) => Math.min(one.curve.at(-1)[0], 1.5 * run.now + 20)));
    const x = (time) => left + (time / end) * (width - left - right), y = (value) => 6 + (1 - value) * (height - bottom - 6);
    for (const value of [0, 0.25, 0.5, 0.75, 1]) {
      g.fillStyle = LINE;
      g.fillRect(left, y(value), width - left - right, 1);
      text(g, percent(value), left - 4, y(value), SOFT, "right");
    }
    const places = [];
    const line = (one, strong) => {
      const shown = one.curve.filter(([time]) => time <= end);
      g.strokeStyle = DATA.colours[one.method];
      g.globalAlpha = strong ? 1 : 0.4;
      g.lineWidth = strong ? 2 : 1.2;
      g.beginPath();
      shown.forEach(([time, value], i) => (i ? g.lineTo(x(time), y(value)) : g.moveTo(x(time), y(value))));
      g.stroke();
      const [, value] = shown.at(-1);
      let place = y(value);
      while (places.some((other) => Math.abs(other - place) < 13)) place += 13;
      places.push(place);
      text(g, `${METHODS[one.method][0]} ${short(stepOf(one.method, one.step))}`, width - right + 6, place, DATA.colours[one.method]);
      g.globalAlpha = 1;
    };
    line(run, true);
    for (const one of past) line(one, false);
    let reached = -Infinity;
    for (const [time, words] of run.marks) {
      g.fillStyle = SOFT;
      g.fillRect(x(time), 6, 1, height - bottom - 6);
      if (x(time) > reached) { text(g, words, x(time) + 3, height - bottom - 8); reached = x(time) + 3 + g.measureText(words).width; }
    }
    text(g, "virtual time", left, height - 7);
    text(g, end.toFixed(0), width - right, height - 7, SOFT, "center");
  }
  function drawClasses() {
    const values = run.last.classes;
    const {g, width, height} = canvas("classes", `Accuracy by digit: ${values.map((value, digit) => `${digit} ${percent(value)}`).join(", ")}.`);
    const step = width / 10, bottom = 24;
    values.forEach((value, digit) => {
      const tall = value * (height - bottom - 18), x = digit * step + step * 0.18;
      g.fillStyle = "#f1f5f9";
      g.fillRect(x, 18, step * 0.64, height - bottom - 18);
      g.fillStyle = DATA.colours[run.method];
      g.fillRect(x, height - bottom - tall, step * 0.64, tall);
      g.font = step < 34 ? "10px system-ui, sans-serif" : "12px system-ui, sans-serif";
      text(g, percent(value), x + step * 0.32, 9, SOFT, "center");
      text(g, String(digit), x + step * 0.32, height - 11, INK, "center");
      if (run.slowDigits[digit]) {
        g.strokeStyle = "#c2410c";
        g.lineWidth = 1.5;
        g.beginPath();
        g.arc(x + step * 0.32, height - 12, 10, 0, 2 * Math.PI);
        g.stroke();
      }
    });
  }
  function drawStore() {
    const store = run.method === "fedecho" ? run.server.logits : null;
    $("store").style.height = store ? "" : "40px";
    const {g, width, height} = canvas("store", store ? `Predictions of ${store.size} of ${CLIENTS} devices are stored.` : "Nothing is stored.");
    $("store-title").textContent = store ? "What FedEcho remembers" : "What the server remembers";
    $("store-note").textContent = store
      ? "A row is a device, a column a digit; the darker, the surer its last model was of that digit where it was shown. Right: how many versions ago."
      : "Between versions this server keeps its model alone. Choose FedEcho to see a store of predictions.";
    if (!store) { text(g, "nothing but the model", 4, 20); return; }
    const row = (height - 18) / CLIENTS, left = 52, right = 40, column = (width - left - right) / 10;
    text(g, "quick", 4, ((CLIENTS - SLOW) * row) / 2);
    text(g, "slow", 4, (CLIENTS - SLOW / 2) * row);
    for (let digit = 0; digit < 10; digit++) text(g, String(digit), left + (digit + 0.5) * column, height - 8, INK, "center");
    for (let client = 0; client < CLIENTS; client++) {
      const z = store.get(client), p = z && softmax(z, 10);
      for (let digit = 0; digit < 10; digit++) {
        let sure = 0, of = 0;
        FREE.forEach((place, i) => { if (p && labels[place] === digit) { sure += p[10 * i + digit]; of++; } });
        g.globalAlpha = p ? 0.04 + (0.96 * sure) / of : 1;
        g.fillStyle = p ? DATA.colours.fedecho : "#f8fafc";
        g.fillRect(left + digit * column, client * row, column - 1, row - 1);
        g.globalAlpha = 1;
      }
      const age = z ? run.server.version - run.heard.get(client) : 0;
      g.font = "10px system-ui, sans-serif";
      if (z && client >= CLIENTS - SLOW) text(g, String(age), width - right + 6, (client + 0.5) * row);
    }
  }
  function draw() {
    drawClock();
    drawServer();
    drawAccuracy();
    drawClasses();
    drawStore();
  }

  // --- controls -----------------------------------------------------------------------------------------------------

  function describeSliders() {
    for (const [name, one] of Object.entries(SLIDERS)) {
      const box = $(`slider-${name}`);
      box.querySelector("span").textContent = one.name();
      box.querySelector("output").textContent = one.show(set[name]);
      box.querySelector("small").textContent = one.about();
      box.querySelector("input").setAttribute("aria-valuetext", `${one.name()} ${one.show(set[name])}`);
      box.querySelector("input").disabled = name === "buffer" && set.method === "fedasync";
    }
  }
  for (const [name, [title]] of Object.entries(METHODS)) {
    const label = document.createElement("label");
    label.style.setProperty("--of", DATA.colours[name]);
    label.innerHTML = `<input type="radio" name="method" value="${name}" ${name === set.method ? "checked" : ""}>${title}`;
    label.firstChild.addEventListener("change", () => { set.method = name; describeSliders(); begin(); });
    $("methods").append(label);
  }
  for (const [name, one] of Object.entries(SLIDERS)) {
    const label = document.createElement("label");
    label.id = `slider-${name}`;
    label.innerHTML = `<span></span> <output></output><input type="range" min="${one.min}" max="${one.max}" step="1" value="${one.from(one.start)}"><small></small>`;
    label.querySelector("input").addEventListener("input", (event) => {
      set[name] = one.to(Number(event.target.value));
      describeSliders();
      if (name === "alpha") { past = []; run = null; begin(); }  // other data: no curve of before is beside it
      else changed(name);
    });
    $("sliders").append(label);
  }
  function showPlaying() { $("play").textContent = playing ? "Pause" : "Play"; }
  const toggle = () => { playing = !playing; showPlaying(); };
  $("play").addEventListener("click", toggle);
  $("again").addEventListener("click", () => begin(still));
  $("draw").addEventListener("click", () => { set.seed++; past = []; run = null; begin(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === " " && event.target === document.body) { event.preventDefault(); toggle(); }
  });
  addEventListener("resize", () => draw());
  const swatch = (colour, words) => `<span style="background: ${colour}"></span>${words}`;
  $("staleness").innerHTML = `versions late: ${[0, 2, 6, 20, 60].map((late) => swatch(shade(late), late === 60 ? "60 or more" : late)).join(" ")} ${swatch(WORKING, "still at work")}`;

  describeSliders();
  showPlaying();
  begin();
  let before = performance.now();
  function frame(now) {
    const passed = Math.min(0.1, (now - before) / 1000);
    before = now;
    if (playing && !document.hidden) {
      advance(run.now + passed * Number($("speed").value), 12);
      draw();
    }
    requestAnimationFrame(frame);
  }
  requestAnimationFrame(frame);
  globalThis.page = {set, get run() { return run; }};  // for tests
})();

// The knobs of the last step: a method and five numbers. A run that was replaced stays in the picture, thinner.

const KNOB_METHODS = {
  fedbuff: ["FedBuff", "adds the mean of a buffer of updates, times the server learning rate."],
  fedasync: ["FedAsync", "mixes in each arriving model. A stale model gets less weight. It has no buffer."],
  fedecho: ["FedEcho", "does what FedBuff does, and then learns from every device's stored predictions."],
  kuiper: ["KUIPER", "mixes in a burst of models. A device counts more if the model that it received made many errors on its images. Devices wait for their burst."],
};
const logarithmic = (low, high) => ({min: 0, max: 100, to: (t) => low * (high / low) ** (t / 100), from: (v) => (100 * Math.log(v / low)) / Math.log(high / low)});
const linear = (min, max) => ({min, max, to: (t) => t, from: (v) => v});
const short = (v) => (v >= 10 ? v.toFixed(0) : v >= 1 ? v.toFixed(1) : v.toFixed(2));
const MIXES = ["fedasync", "kuiper"];
const KNOBS = {
  step: {...logarithmic(0.05, 1.5), name: (set) => (MIXES.includes(set.method) ? "mixing weight" : "server learning rate"),
    show: (v, set) => short(MIXES.includes(set.method) ? Math.min(1, v) : v), about: "how far the model moves at each version"},
  slow: {...logarithmic(1, 60), name: () => "slow devices", show: (v) => `${short(v)} s`, about: "the shortest training time of the six slow devices"},
  flight: {...linear(1, 30), name: () => "concurrency", show: (v) => v.toFixed(0), about: "how many devices train at the same time"},
  buffer: {...linear(1, 15), name: () => "buffer", show: (v) => v.toFixed(0), about: "how many updates make a version"},
  alpha: {...logarithmic(0.05, 10), name: () => "label skew α", show: short, about: "if it is small, each device has few digits. A change starts a new run"},
};
const chosen = {...USUAL, step: 0.3, seed: 1};

function chosenRun() {
  const run = new Run(chosen, DIGITS);
  return Object.assign(run, {name: `${KNOB_METHODS[chosen.method][0]} ${KNOBS.step.show(chosen.step, chosen)}`, colour: DATA.colours[chosen.method][0]});
}

function showKnobs(story) {
  const begin = (keep) => {
    const old = story.runs.filter((run) => keep && run.curve.length > 3).map((run) => Object.assign(run, {past: true}));
    story.runs = [chosenRun(), ...old.slice(0, 3)];
    story.step.marks = [];
    describe();
    story.draw();
  };
  const describe = () => {
    for (const [name, knob] of Object.entries(KNOBS)) {
      const box = $(`knob-${name}`), input = box.querySelector("input");
      box.querySelector("b").textContent = knob.name(chosen);
      box.querySelector("output").textContent = knob.show(chosen[name], chosen);
      input.setAttribute("aria-valuetext", `${knob.name(chosen)} ${knob.show(chosen[name], chosen)}`);
      input.disabled = name === "buffer" && chosen.method === "fedasync";
    }
    $("rule").textContent = `${KNOB_METHODS[chosen.method][0]} ${KNOB_METHODS[chosen.method][1]}`;
  };
  const change = (name) => {  // what can change while the run goes on
    const [run] = story.runs;
    Object.assign(run.server.settings, {step: chosen.step, mixing: Math.min(1, chosen.step), buffer: chosen.buffer});
    Object.assign(run.settings, {slow: chosen.slow});
    run.clock.concurrency = chosen.flight;
    run.name = `${KNOB_METHODS[chosen.method][0]} ${KNOBS.step.show(chosen.step, chosen)}`;
    const marks = (story.step.marks ?? []).filter(([time]) => run.now - time > 0.02 * run.now);
    story.step.marks = [...marks, [run.now, `${KNOBS[name].name(chosen)} ${KNOBS[name].show(chosen[name], chosen)}`]].slice(-6);
    story.draw();
  };
  $("knobs").append(fragment(`<fieldset class="methods"><legend>Method</legend>${Object.entries(KNOB_METHODS).map(([method, [title]]) =>
    `<label style="--of: ${DATA.colours[method][0]}"><input type="radio" name="method" value="${method}" ${method === chosen.method ? "checked" : ""}>${title}</label>`).join("")}</fieldset>
    <p id="rule" class="note"></p><div class="sliders">${Object.entries(KNOBS).map(([name, knob]) =>
    `<label id="knob-${name}"><b></b> <output></output><input type="range" min="${knob.min}" max="${knob.max}" step="1" value="${knob.from(chosen[name])}"><small>${knob.about}</small></label>`).join("")}</div>
    <button type="button" id="draw">Other devices, other images</button>`));
  $("knobs").querySelectorAll("[name=method]").forEach((radio) => radio.addEventListener("change", () => { chosen.method = radio.value; begin(true); }));
  for (const [name, knob] of Object.entries(KNOBS)) {
    $(`knob-${name}`).querySelector("input").addEventListener("input", (event) => {
      chosen[name] = knob.to(Number(event.target.value));
      describe();
      if (name === "alpha") begin(false); else change(name);
    });
  }
  $("draw").addEventListener("click", () => { chosen.seed++; begin(false); });
  describe();
}

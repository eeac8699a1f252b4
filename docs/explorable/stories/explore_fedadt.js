// FedADT's page: a late model, its lesson, and whether labels or teacher make the difference.

const colourOf = (method, number = 0) => DATA.colours[method][number];
const SEED = 4, LATE = 60;
const federation = (name, colour, server, dash) => Object.assign(new Run({method: "fedadt", flight: 15, seed: SEED, server}, DIGITS), {name, colour, dash});
const late = (run) => run.done.at(-1).staleness >= LATE && run.isSlow(run.done.at(-1).client);
const points = (value) => `${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(1)} points`;

const STEPS = [
  {
    name: "A late model", panels: [lessonPicture, clockPicture], end: 60, speed: 2, runs: () => [federation("FedADT", colourOf("fedadt"))],
    text: () => `<p>Here the server makes a new version from every single update, so updates come many versions late. A device sends a whole model, which is the old version trained further on the device's images.</p>
      <p>A device owns few kinds of digits. Training on them alone makes a model forget the others.</p>`,
    bet: {question: `The first slow device is ${LATE} versions late or more. How many test images does its model read, compared with today's model?`, options: ["fewer than half as many", "half to nine tenths as many", "about as many"],
      answer: ([run]) => { const {global, model} = lesson(run), ratio = model.all / global.all; return ratio < 0.5 ? 0 : ratio < 0.9 ? 1 : 2; }},
    stops: [{until: late, result: ([run]) => { const {global, model} = lesson(run); return `<p>The model comes ${run.done.at(-1).staleness} versions late. It reads <b>${percent(model.all)}</b> of the test images, and today's model reads ${percent(global.all)}.</p>
      <p>FedAsync would mix it in with a small weight. FedADT teaches it first.</p>`; }}],
  },
  {
    name: "The lesson", panels: [lessonPicture, clockPicture], end: 60, speed: 2, runs: () => [federation("FedADT", colourOf("fedadt"))],
    text: ([run]) => `<p>The server owns ${run.settings.labelled} labelled images, five of each digit. A late model takes one pass over them. Two things teach it: the <b>labels</b>, and the predictions of <b>today's model</b>, softened by a temperature of 3.</p>`,
    bet: {question: "How many more test images does the same late model read after its lesson?", options: ["up to 5 points more", "5 to 15 points more", "over 15 points more"],
      answer: ([run]) => { const {model, taught} = lesson(run), gain = 100 * (taught.all - model.all); return gain <= 5 ? 0 : gain <= 15 ? 1 : 2; }},
    stops: [{until: late, result: ([run]) => { const {global, model, taught} = lesson(run); return `<p>One pass changes the late model from ${percent(model.all)} to <b>${percent(taught.all)}</b>. Today's model reads ${percent(global.all)}.</p>
      <p>Then it is mixed in with the weight ${(1 / Math.sqrt(1 + run.done.at(-1).staleness)).toFixed(2)}, which falls with the square root of staleness.</p>`; }}],
  },
  {
    name: "Labels or teacher?", panels: [{...accuracyPicture, size: "wide"}], end: 40, speed: 4,
    runs: () => [federation("labels and teacher", colourOf("fedadt")), federation("labels alone", colourOf("fedadt", 3), {low: 0, high: 0}, [7, 4]), federation("no lesson", colourOf("fedasync"), {distillRate: 0})],
    text: () => `<p>Three servers have the same devices and the same arrivals. One gives the whole lesson. One gives the same lesson without the teacher, from labels alone. One gives no lesson.</p>`,
    bet: {question: "The lesson helps. Which part of it does?", options: ["the teacher: labels alone are at least 2 points worse", "the labels: alone they do as well, within 2 points", "labels alone are at least 2 points better"],
      answer: ([both, labels]) => { const gain = both.level(Infinity, 100) - labels.level(Infinity, 100); return gain >= 2 ? 0 : gain > -2 ? 1 : 2; }},
    stops: [{result: ([both, labels, none]) => { const level = (run) => run.level(Infinity, 100); return `<p>Over the last 100 versions: labels and teacher ${level(both).toFixed(1)}%, labels alone ${level(labels).toFixed(1)}%, no lesson ${level(none).toFixed(1)}%.
      The whole lesson is worth ${points(level(both) - level(none))}, and adding the teacher to the labels is worth ${points(level(both) - level(labels))}.</p>
      <p>If a method has two ingredients, always ask what each does alone.</p>`; }}],
  },
  evidenceStep("FedADT"),
];

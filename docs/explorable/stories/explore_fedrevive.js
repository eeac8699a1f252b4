// FedRevive's page: made-up images appear, models teach on them, and what that is worth.

const colourOf = (method, number = 0) => DATA.colours[method][number];
const SEED = 4;
const federation = (name, colour, server, dash) => Object.assign(new Run({method: "fedrevive", flight: 25, step: 0.2, seed: SEED, server}, DIGITS), {name, colour, dash});
const revived = () => federation("FedRevive", colourOf("fedrevive"));
const madeUp = (run) => run.server.pool.labels.length;
const points = (value) => `${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(1)} points`;

const STEPS = [
  {
    name: "Made-up images", panels: [galleryPicture, accuracyPicture], end: 60, speed: 2, runs: () => [revived()],
    text: ([run]) => `<p>Each update makes a version here. From version ${run.server.settings.frozenUntil} on, after every tenth update, a <b>generator</b> makes up 20 images. It turns random numbers and a digit that is asked for into 8 × 8 pixels.</p>
      <p>Its teachers are the latest eight models that devices sent. Training pushes the generator to images that these models read as the digit that was asked for. No real image is involved.</p>`,
    bet: {question: "What will the first made-up images look like?", options: ["like digits", "like noise", "all the same"], answer: () => 1},
    stops: [{until: madeUp, result: ([run]) => `<p>They look like noise. Yet today's model reads ${percent(asAsked(run))} of them as the digit that was asked for; chance would be 10%.</p>
      <p>Nothing forces the images to look like digits. They only have to convince the models.</p>`}],
  },
  {
    name: "The generator learns", panels: [galleryPicture, accuracyPicture], end: 60, speed: 4, runs: () => [revived()],
    text: () => `<p>What one batch taught the generator stays: each batch moves its weights a little. The images join a pool, on which the models will teach.</p>`,
    bet: {question: "When the pool holds 400 images, how many does today's model read as asked?", options: ["fewer than half", "half to nine tenths", "over nine tenths"],
      answer: ([run]) => { const share = asAsked(run); return share < 0.5 ? 0 : share <= 0.9 ? 1 : 2; }},
    stops: [{until: (run) => madeUp(run) >= 400, result: ([run]) => `<p>Today's model reads <b>${percent(asAsked(run))}</b> of the ${madeUp(run)} made-up images as the digit that was asked for, and ${percent(run.last.all)} of the real test images.</p>
      <p>Look at the images: would you read the same?</p>`}],
  },
  {
    name: "Revived updates", panels: [{...accuracyPicture, size: "wide"}, galleryPicture], end: 40, speed: 4,
    runs: () => [revived(), federation("late updates damped", colourOf("afl_dw"), {silentUntil: Infinity, every: 1e9}, [7, 4])],
    text: () => `<p>The staler an update, the smaller its weight. AFL-DW, a simple method, stops there: it damps. FedRevive fills the part that was damped with what the eight teachers say on made-up images.</p>
      <p>Both servers have the same devices and the same weights.</p>`,
    bet: {question: "After 40 seconds, what is the filling worth?", options: ["it gains 2 points or more", "less than 2 points either way", "it costs 2 points or more"],
      answer: ([revive, damp]) => { const gain = revive.level(Infinity, 100) - damp.level(Infinity, 100); return gain >= 2 ? 0 : gain > -2 ? 1 : 2; }},
    stops: [{result: ([revive, damp]) => `<p>Over the last 100 versions FedRevive reads ${revive.level(Infinity, 100).toFixed(1)}%, damping alone ${damp.level(Infinity, 100).toFixed(1)}%: ${points(revive.level(Infinity, 100) - damp.level(Infinity, 100))}.</p>
      <p>The latest update was filled to ${percent(revive.server.latest.beta)}. Damping costs nothing to compute; the filling takes a generator and eight models. The next step says what many seeds made of the difference.</p>`}],
  },
  evidenceStep("FedRevive"),
];

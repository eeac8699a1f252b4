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
    text: ([run]) => `<p>Each update makes a version here. From version ${run.server.settings.frozenUntil} on, after every tenth update, a <b>generator</b> makes up 20 images. It turns random numbers and a digit that the server asks for into 8 × 8 pixels.</p>
      <p>Its teachers are the latest eight models that devices sent. Training pushes the generator towards images that these models read as the digit that was asked for. No real image is involved.</p>`,
    bet: {question: "What will the first made-up images look like?", options: ["like digits", "like noise", "all the same"], answer: () => 1},
    stops: [{until: madeUp, result: ([run]) => `<p>They look like noise. Yet today's model reads ${percent(asAsked(run))} of them as the digit that was asked for; chance would be 10%.</p>
      <p>Nothing forces the images to look like digits. They only have to convince the models.</p>`}],
  },
  {
    name: "The generator learns", panels: [galleryPicture, accuracyPicture], end: 60, speed: 4, runs: () => [revived()],
    text: () => `<p>Each batch moves the generator's weights a little, so what it learned from earlier batches stays. The images join a pool, and the models will teach on this pool.</p>`,
    bet: {question: "When the pool holds 400 images, how many of them does today's model read as the digit that was asked for?", options: ["fewer than half", "half to nine tenths", "over nine tenths"],
      answer: ([run]) => { const share = asAsked(run); return share < 0.5 ? 0 : share <= 0.9 ? 1 : 2; }},
    stops: [{until: (run) => madeUp(run) >= 400, result: ([run]) => `<p>Today's model reads <b>${percent(asAsked(run))}</b> of the ${madeUp(run)} made-up images as the digit that was asked for, and ${percent(run.last.all)} of the real test images.</p>
      <p>Look at the images. Would you read the same digits?</p>`}],
  },
  {
    name: "Revived updates", panels: [{...accuracyPicture, size: "wide"}, galleryPicture], end: 40, speed: 4,
    runs: () => [revived(), federation("late updates damped", colourOf("afl_dw"), {silentUntil: Infinity, every: 1e9}, [7, 4])],
    text: () => `<p>The staler an update, the smaller its weight. AFL-DW, a simple method, does nothing more. FedRevive fills the part that is missing with what the eight teachers teach on made-up images.</p>
      <p>Both servers have the same devices, and give an update the same weight.</p>`,
    bet: {question: "After 40 seconds, what is the filling worth?", options: ["it gains 2 points or more", "less than 2 points either way", "it costs 2 points or more"],
      answer: ([revive, damp]) => { const gain = revive.level(Infinity, 100) - damp.level(Infinity, 100); return gain >= 2 ? 0 : gain > -2 ? 1 : 2; }},
    stops: [{result: ([revive, damp]) => `<p>Over the last 100 versions FedRevive reads ${revive.level(Infinity, 100).toFixed(1)}%, and damping alone reads ${damp.level(Infinity, 100).toFixed(1)}%. The difference is ${points(revive.level(Infinity, 100) - damp.level(Infinity, 100))}.</p>
      <p>FedRevive replaced ${percent(revive.server.latest.beta)} of the latest update. Damping costs nothing to compute, but the filling takes a generator and eight models. The next step says what our runs over many seeds found.</p>`}],
  },
  evidenceStep("FedRevive", "is the one that FedRevive's paper prints"),
];

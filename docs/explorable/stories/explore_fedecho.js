// FedEcho's page: what the server stores, how long it echoes, and which baseline it beats.

const colourOf = (method, number = 0) => DATA.colours[method][number];
const SEED = 4;
const federation = (name, colour, settings, dash) => Object.assign(new Run({seed: SEED, ...settings}, DIGITS), {name, colour, dash});
const echoing = () => federation("FedEcho", colourOf("fedecho"), {method: "fedecho", step: 1});
const slowReport = (run) => run.isSlow(run.done.at(-1).client);
const ages = (run) => [...run.server.logits.keys()].map((client) => run.server.version - run.heardAt.get(client));

const STEPS = [
  {
    name: "A memory of predictions", panels: [storePicture, clockPicture], end: 60, speed: 4, runs: () => [echoing()],
    text: ([run]) => `<p>The server owns ${run.settings.unlabelled} images without labels. When a device reports, the server runs the device's model on these images, and <b>stores</b> what it predicts. The next report of the same device replaces this row.</p>
      <p>Of the ${run.settings.clients} devices, ${run.settings.slowClients} need 30 to 45 seconds for a report.</p>`,
    bet: {question: "How many rows are filled when the first slow device reports?", options: ["up to 10", "all but a few of the slow ones' rows", "all"],
      answer: ([run]) => { const filled = run.server.logits.size; return filled <= 10 ? 0 : filled < run.settings.clients ? 1 : 2; }},
    stops: [{until: slowReport, result: ([run]) => `<p>After ${run.now.toFixed(0)} seconds the store holds the predictions of <b>${run.server.logits.size}</b> devices. Until now it had no row of a slow one, so for ${run.server.version} versions no slow device taught the model.</p>
      <p>A memory cannot hold what was never said. From now on, it can.</p>`}],
  },
  {
    name: "The echo", panels: [storePicture, clockPicture], end: 70, speed: 4, runs: () => [echoing()],
    text: () => `<p>After each version, the new model takes a short lesson. It learns from the <b>mean of all stored predictions</b>, the old ones too. In FedBuff, a report counts in one version. Here it teaches until the device reports again.</p>
      <p>The number on the right of a slow device's row counts the versions since its report.</p>`,
    bet: {question: "After 70 seconds, in how many versions has the oldest row taught?", options: ["up to 20", "21 to 60", "more than 60"],
      answer: ([run]) => { const oldest = Math.max(...ages(run)); return oldest <= 20 ? 0 : oldest <= 60 ? 1 : 2; }},
    stops: [{result: ([run]) => `<p>The oldest row has taught <b>${Math.max(...ages(run))} versions</b>. In FedBuff, the report behind it would have counted in one.</p>
      <p>The gain: a slow device has a vote in every version. The price: its vote is about a model that is long gone.</p>`}],
  },
  {
    name: "Against which FedBuff?", panels: [{...accuracyPicture, size: "wide"}], end: 60, speed: 4,
    runs: () => [echoing(), federation("FedBuff, rate 1", colourOf("fedbuff"), {step: 1}), federation("FedBuff, rate 0.3", colourOf("fedbuff", 1), {step: 0.3}, [7, 4])],
    text: () => `<p>Three servers have the same devices and the same arrivals. FedEcho uses the server learning rate 1. One FedBuff uses 1, too, as in FedEcho's paper. The other uses 0.3.</p>`,
    bet: {question: "Which FedBuff does FedEcho beat by 3 points or more at the end?", options: ["both", "only the one with rate 1", "neither"],
      answer: ([echo, one, third]) => { const beats = (run) => echo.level() - run.level() >= 3; return beats(one) ? (beats(third) ? 0 : 1) : 2; }},
    stops: [{result: ([echo, one, third]) => `<p>Over the last 20 versions FedEcho reads ${echo.level().toFixed(1)}% of the test images, FedBuff with rate 1 reads ${one.level().toFixed(1)}%, and FedBuff with rate 0.3 reads ${third.level().toFixed(1)}%.</p>
      <p>A lead over an untuned baseline says little. In the first ten seconds FedEcho read ${echo.early(10).toFixed(0)}%, and the better FedBuff ${third.early(10).toFixed(0)}%: here the echo helps early.</p>`}],
  },
  evidenceStep("FedEcho"),
];

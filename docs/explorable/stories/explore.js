// The main page: asynchronous federated learning in six steps.

const colourOf = (method, number = 0) => DATA.colours[method][number];
const named = (name, colour, settings, dash) => Object.assign(new Run(settings, DIGITS), {name, colour, dash});
const points = (value) => `${Math.abs(value).toFixed(1)} points`;
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
const SEED = 4;
function recorded(method, setting) {  // our recorded leads over FedBuff, as they are written
  const row = leadOf(method, setting);
  return {plain: signed(row.plain[0]), tuned: signed(row.tuned[0])};
}

// --- 2: one slow device is followed, the first that is sent a version above 5 --------------------------------------------

function watch(run) {  // remember the first slow device that is sent a version above 5
  if (run.client !== undefined) return;
  const job = run.clock.jobs.find((one) => run.isSlow(one.client) && one.version > 5);
  if (job) Object.assign(run, {client: job.client, sent: job.version, sentAccuracy: run.last.all});
}
function ownWorth(run) {  // today's model before and after the followed update is added in full
  const {x} = run.server, {delta} = run.latest.update, test = (model) => accuracy(NET, model, run.data, run.data.test).all;
  return [test(x), test(x.map((value, i) => value + delta[i]))];
}

// --- 3: what slow devices own, and what they say --------------------------------------------------------------------------

function heard(run) {
  const slow = run.parts.slice(run.settings.clients - run.settings.slowClients).flat().length / run.parts.flat().length;
  const share = run.done.filter((job) => run.isSlow(job.client)).length / run.done.length, owned = ownedBySlow(run);
  const recent = run.last.classes, of = (some) => mean(recent.filter((_, digit) => some === owned[digit] > 0.5));
  return {slow, share, theirs: of(true), others: of(false), digits: owned.flatMap((value, digit) => (value > 0.5 ? [digit] : []))};
}
const listed = (digits) => digits.join(", ").replace(/, ([^,]*)$/, " and $1");

const STEPS = [
  {
    name: "Nobody waits", panels: [clockPicture, accuracyPicture], end: 40,
    runs: () => [named("FedBuff", colourOf("fedbuff"), {step: 0.3, seed: SEED})],
    text: () => `<p>A server sends its model to 25 devices. Each one trains it on its own images and sends back an <b>update</b>.
      A quick device needs 1 to 2 seconds, a slow one 30 to 45.</p>
      <p>A server could wait until all have reported. This one does not. It takes any five updates that arrive, makes a new
      <b>version</b> of the model from them, and sends that to devices that are free.</p>`,
    bet: {question: "How many versions are made before the first slow device reports?", options: ["1 to 3", "about 10", "more than 30"],
      answer: ([run]) => (run.server.version <= 3 ? 0 : run.server.version <= 30 ? 1 : 2)},
    stops: [{until: (run) => run.isSlow(run.done.at(-1).client), result: ([run]) => `<p>The first slow device reported after ${run.now.toFixed(0)} seconds.
      By then the server had made <b>${run.server.version} versions</b> from ${run.clock.arrivals} updates, and its model reads ${percent(run.last.all)} of the test images.
      A server that waits for all 25 devices would not have made one.</p><p>Asynchrony buys faster progress. The next steps show its price.</p>`}],
  },
  {
    name: "The model you left", panels: [clockPicture, accuracyPicture], end: 40, speed: 1,
    runs: () => [named("FedBuff", colourOf("fedbuff"), {step: 0.3, seed: SEED, slow: 12})],
    follow: (job, run) => job.client === run.client && job.version === run.sent,
    text: () => `<p>We follow one slow device, whose bar has a frame. It is sent the newest model and trains it. Meanwhile the server goes on.
      When the device reports, the model that it was sent is out of date.</p><p>The <b>staleness</b> of an update is the number of versions that were made since its device was sent the model.</p>`,
    bet: {question: "When its update arrives, how many versions late is it?", options: ["1 or 2", "about 10", "more than 20"],
      answer: ([run]) => { const {staleness} = run.done.at(-1); return staleness <= 4 ? 0 : staleness <= 20 ? 1 : 2; }},
    stops: [{
      until: (run) => { watch(run); const job = run.done.at(-1); return job.client === run.client && job.version === run.sent; },
      result: ([run]) => {
        const [before, after] = ownWorth(run), {staleness} = run.done.at(-1);
        return `<p>The device was sent version ${run.sent}, which read ${percent(run.sentAccuracy)} of the test images. Now the server is at version
          ${run.sent + staleness}, which reads ${percent(before)}. The update is <b>${staleness} versions late</b>.</p>
          <p>It says how to improve a model that nobody uses any more. Added in full to today's model, it would change accuracy from ${percent(before)} to <b>${percent(after)}</b>.</p>`;
      },
    }],
  },
  {
    name: "Who is heard", panels: [clockPicture, classesPicture], end: 60, speed: 4,
    runs: () => [named("FedBuff", colourOf("fedbuff"), {step: 0.3, seed: SEED})],
    text: ([run]) => `<p>The devices own different images. The six slow ones own ${percent(heard(run).slow)} of all images, and more than half of the images of the digit
      ${listed(heard(run).digits)} (ringed).</p><p>The server listens to whoever reports.</p>`,
    bet: {question: "Of all updates in one minute, what share comes from slow devices?", options: ["about 20%, their share of the devices", "5% to 10%", "under 5%"],
      answer: ([run]) => { const {share} = heard(run); return share > 0.1 ? 0 : share >= 0.05 ? 1 : 2; }},
    stops: [{result: ([run]) => {
      const {slow, share, theirs, others, digits} = heard(run);
      return `<p>Slow devices own ${percent(slow)} of the images and sent <b>${(100 * share).toFixed(1)}% of the updates</b>.
        The model reads ${percent(theirs)} of the digit${digits.length > 1 ? "s" : ""} that they mostly own (${listed(digits)}), and ${percent(others)} of the others.</p>
        <p>A model learns from the devices that are heard often. The method has to make up for the rest.</p>`;
    }}],
  },
  {
    name: "One number", panels: [{...accuracyPicture, size: "wide"}], end: 60,
    runs: () => [named("rate 1", colourOf("fedbuff"), {step: 1, seed: SEED}), named("rate 0.3", colourOf("fedbuff", 1), {step: 0.3, seed: SEED}, [7, 4])],
    text: () => `<p>The server multiplies the mean of five updates by one number, the <b>server learning rate</b>, and adds the result to the model.
      At 1 the model moves by the whole mean. This is the rate that FedEcho's paper prints for FedBuff, the usual baseline.</p>
      <p>Two servers run FedBuff side by side. They have the same devices, the same images, and the same arrivals. Only this number differs.</p>`,
    bet: {question: "Which one reads more test images after one minute?", options: ["rate 1, by 3 points or more", "rate 0.3, by 3 points or more", "they end within 3 points"],
      answer: ([one, third]) => { const gap = third.level() - one.level(); return gap < -3 ? 0 : gap > 3 ? 1 : 2; }},
    stops: [{result: ([one, third]) => `<p>Over its last 20 versions, rate 0.3 reads ${third.level().toFixed(1)}% and rate 1 reads ${one.level().toFixed(1)}%.
      The gap is <b>${points(third.level() - one.level())}</b>, and a single number of the <em>baseline</em> causes it.</p>
      <p>Five devices with few digits each pull the model towards their own images, with updates that are several versions old. At rate 1 the model follows them all the way. At 0.3 it averages over more devices.</p>
      <p class="evidence">Our recorded runs say the same. FedEcho leads FedBuff by ${recorded("FedEcho").plain} points with rate 1, and by ${recorded("FedEcho").tuned} when both are tuned.
      For KUIPER the leads are ${recorded("KUIPER", "bias 0").plain} and ${recorded("KUIPER", "bias 0").tuned} at bias 0, and ${recorded("KUIPER", "bias 1").plain} and ${recorded("KUIPER", "bias 1").tuned} at bias 1, the one of its paper. For FedADT they are ${recorded("FedADT").plain} and ${recorded("FedADT").tuned}.</p>`}],
  },
  {
    name: "The echo", panels: [storePicture, accuracyPicture], end: 60,
    runs: () => [named("FedEcho", colourOf("fedecho"), {method: "fedecho", step: 1, seed: SEED}), named("FedBuff", colourOf("fedbuff"), {step: 0.3, seed: SEED})],
    text: ([echo]) => `<p>Slow devices are heard rarely. <b>FedEcho</b> lets them echo. When a device reports, the server notes what its model predicts on ${echo.settings.unlabelled} images without labels.
      After each version, the new model learns from the mean of all stored predictions. So a device has a say long after its last report.</p>
      <p>Each server has a rate that suits it: FedEcho 1, FedBuff 0.3.</p>`,
    bet: {question: "Who leads, by 3 points or more?", options: ["FedEcho, in the first ten seconds and at the end", "FedEcho in the first ten seconds; at the end nobody", "FedEcho never"],
      answer: ([echo, buff]) => (echo.early(10) - buff.early(10) < 3 ? 2 : echo.level() - buff.level() >= 3 ? 0 : 1)},
    stops: [
      {until: (run) => run.isSlow(run.done.at(-1).client), result: ([echo, buff]) => `<p>At ${echo.now.toFixed(0)} seconds the predictions of the first slow device are stored, and one of the lowest rows fills. From now on they teach the model after every version.
        In the first ten seconds FedEcho read ${echo.early(10).toFixed(0)}% on average, and FedBuff ${buff.early(10).toFixed(0)}%. Go on to the full minute.</p>`},
      {result: ([echo, buff]) => `<p>In the first ten seconds FedEcho read ${echo.early(10).toFixed(0)}% of the test images, and FedBuff ${buff.early(10).toFixed(0)}%.
        Over the last 20 versions they read ${echo.level().toFixed(1)}% and ${buff.level().toFixed(1)}%.</p><p>This is one draw of devices. A verdict needs many seeds, and a search for each method's rates.</p>
        <p class="evidence">With both, we recorded a lead of ${recorded("FedEcho").tuned} points at the end of the run.</p>`},
    ],
  },
  {
    name: "Your turn", panels: [{...clockPicture, size: "wide"}, {...accuracyPicture, size: "wide"}, classesPicture, storePicture], speed: 4, knobs: showKnobs,
    runs: () => [chosenRun()],
    text: () => `<p>All knobs are yours. A change takes effect at once, but a new label skew starts a new run. If you choose another method, it runs on the same devices, and the earlier line stays.</p>
      <p>Try this: run FedBuff at rate 1. Does its accuracy still swing if slow devices become quick, or if only five devices train at a time?</p>`,
  },
];

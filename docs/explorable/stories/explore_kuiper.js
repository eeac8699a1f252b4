// KUIPER's page: bursts, the reward for error, and what two per cent of one board's time change.

const BOARDS = 12, BURST = 4, BURSTS = 90;
const colourOf = (method, number = 0) => DATA.colours[method][number];

class Boards extends Run {  // each board has a time of its own that never changes
  constructor(settings, data, {moved = null, by = 1} = {}) {
    super({method: "kuiper", clients: BOARDS, slowClients: 0, flight: BOARDS, buffer: BURST, step: 0.7, alpha: 0.3, ...settings}, data);
    Object.assign(this, {moved, by, bursts: []});
    for (const job of this.clock.jobs) job.until = this.time(job.client);  // dispatched before `moved` was known
  }
  usual(client) { return 1 + 0.17 * client; }
  time(client) { return this.usual(client) * (client === this.moved ? this.by : 1); }
  duration(client) { return this.time(client); }
  advance(time, options = {}) {
    return super.advance(time, {...options, until: (run) => {
      const {made} = run.latest;
      if (made) run.bursts.push({time: run.now, members: run.done.filter((job) => job.into === run.bursts.length).map((job) => job.client)});
      return options.until?.(run) ?? false;
    }});
  }
  lastBurst() { return this.done.filter((job) => job.into === this.bursts.length - 1); }
}
const KINDS = [1, 1.6, 2.3], MOVED = 9;  // seconds of three kinds of boards, four of each; the board that step 3 moves
class Clocks extends Boards {  // boards of three kinds, without training: who meets whom depends on time alone
  constructor(...all) { super(...all); this.clock.blind = true; }
  usual(client) { return KINDS[Math.floor(client / 4)]; }
  test() { this.last = {all: NaN, classes: []}; }
}
const boards = (settings = {}) => Object.assign(new Boards(settings, DIGITS), {name: "KUIPER", colour: colourOf("kuiper")});
const clocks = (moved = null, by = 1) => Object.assign(new Clocks({}, DIGITS, {moved, by}), {name: "KUIPER", colour: colourOf("kuiper")});
const least = (values) => values.indexOf(Math.min(...values)), most = (values) => values.indexOf(Math.max(...values));

function waited(run, client) {  // the share of its time until now that a board has waited
  const own = run.done.filter((job) => job.client === client && run.bursts[job.into]);
  return own.reduce((sum, job) => sum + run.bursts[job.into].time - job.until, 0) / run.now;
}

// Pairs of boards whose share of common bursts differs by more than a tenth between two runs.
function changedPairs([before, after]) {
  const [one, two] = [before, after].map(sharing), changed = [];
  for (let a = 0; a < BOARDS; a++) for (let b = a + 1; b < BOARDS; b++) if (Math.abs(one[a][b] - two[a][b]) > 0.1) changed.push([a, b]);
  return changed;
}
const PAIRS = (BOARDS * (BOARDS - 1)) / 2;
const foreign = (pairs, moved) => pairs.filter((pair) => !pair.includes(moved)).length;
const said = (runs) => {
  const pairs = changedPairs(runs), {moved, by} = runs[1];
  return `Board ${moved + 1} takes ${Math.abs(100 * (by - 1)).toFixed(0)}% ${by < 1 ? "less" : "more"} time. Of the ${PAIRS} pairs of boards, <b>${pairs.length}</b> now meet more or less often, by over a tenth of their bursts.
    In ${foreign(pairs, moved)} of these pairs board ${moved + 1} is not even a member.`;
};

function moveBoard(story) {  // choose a board and how far its time moves; clocks alone run, so the answer is there at once
  $("knobs").append(fragment(`<div class="sliders"><label id="knob-board"><b>board</b> <output></output><input type="range" min="1" max="${BOARDS}" value="${MOVED + 1}"><small>whose time is changed</small></label>
    <label id="knob-by"><b>its time</b> <output></output><input type="range" min="-5" max="5" value="2"><small>longer or shorter, in per cent</small></label></div><p id="said" aria-live="polite"></p>`));
  const [board, by] = ["board", "by"].map((name) => $(`knob-${name}`).querySelector("input"));
  const show = () => {
    $("knob-board").querySelector("output").textContent = board.value;
    $("knob-by").querySelector("output").textContent = `${by.value > 0 ? "+" : by.value < 0 ? "−" : ""}${Math.abs(by.value)}%`;
    story.runs = [clocks(), clocks(Number(board.value) - 1, 1 + by.value / 100)];
    for (const run of story.runs) run.advance(1e9, {until: (one) => one.bursts.length >= BURSTS});
    $("said").innerHTML = said(story.runs);
    story.draw();
  };
  board.addEventListener("input", show);
  by.addEventListener("input", show);
  show();
}

const STEPS = [
  {
    name: "Wait for your burst", panels: [burstsPicture], end: 20, speed: 0.5, runs: () => [boards()],
    text: () => `<p>Every board trains on its own images. The quickest needs ${(1).toFixed(2)} seconds, the slowest ${(1 + 0.17 * 11).toFixed(2)}. A board that has finished does not train again at once. It waits until four boards have finished. Then the server makes one version from the four, and sends it to these four.</p>`,
    bet: {question: "Until the fifth burst closes, what share of its time does the quickest board spend waiting?", options: ["under 10%", "10% to 30%", "over 30%"],
      answer: ([run]) => { const share = waited(run, 0); return share < 0.1 ? 0 : share <= 0.3 ? 1 : 2; }},
    stops: [{until: (run) => run.bursts.length >= 5, result: ([run]) => `<p>Five bursts are closed after ${run.now.toFixed(1)} seconds. Board 1 waited ${percent(waited(run, 0))} of the time, and board ${BOARDS} waited ${percent(waited(run, BOARDS - 1))}.</p>
      <p>That is the price. In return four updates arrive together, all from models of nearly the same age.</p>`}],
  },
  {
    name: "A reward for error", panels: [weightsPicture, burstsPicture], end: 40, speed: 1, runs: () => [boards()],
    text: () => `<p>The four members of a burst do not count equally. The weight of a board is its number of images, times the <b>error</b> that the received model made on them. So a board whose images the model cannot read yet counts more.</p>`,
    bet: {question: "The clock stops at the first burst, from the tenth on, in which the member with the largest weight is not the one with the most images. Which member has the largest weight?", options: ["the member with the largest error", "the member with the fewest images", "another member"],
      answer: ([run]) => { const members = run.lastBurst(), top = most(members.map((job) => job.weight)); return top === most(members.map((job) => job.weight / job.samples)) ? 0 : top === least(members.map((job) => job.samples)) ? 1 : 2; }},
    stops: [{until: (run) => { const members = run.lastBurst(); return run.latest.made && run.bursts.length >= 10 && most(members.map((job) => job.weight)) !== most(members.map((job) => job.samples)); },
      result: ([run]) => { const members = run.lastBurst(), heavy = members[most(members.map((job) => job.weight))]; return `<p>Board ${heavy.client + 1} has the largest weight. It has ${heavy.samples} images, and the model that it received read ${percent(1 - heavy.weight / heavy.samples)} of them. Today's model reads ${percent(run.last.all)} of the test images.</p>
        <p>It is decisive that the accuracy is measured before the board trains. After training, nearly every model reads its own board's images.</p>`; }}],
  },
  {
    name: "Two per cent", panels: [sharingPicture(0, "Who shares bursts, with unchanged times"), sharingPicture(1, `Who shares bursts if board ${MOVED + 1} takes 2% longer`)], end: 400, speed: 16,
    runs: () => [clocks(), clocks(MOVED, 1.02)],
    text: () => `<p>The boards' times alone decide which boards meet in a burst. Here there are three kinds of boards, four of each. They need ${KINDS.map((time) => time.toFixed(1)).join(", ").replace(/, ([^,]*)$/, " and $1")} seconds. So the four of a kind finish together and share every burst.</p>
      <p>In the second picture, board ${MOVED + 1} takes two per cent longer. Nothing else differs.</p>`,
    bet: {question: `After ${BURSTS} bursts, which of the ${PAIRS} pairs of boards have met more or less often, by over a tenth of their bursts?`, options: ["none", `only pairs with board ${MOVED + 1}`, "other pairs too"],
      answer: (runs) => { const pairs = changedPairs(runs); return !pairs.length ? 0 : foreign(pairs, MOVED) ? 2 : 1; }},
    stops: [{until: (run) => run.bursts.length >= BURSTS, result: (runs) => `<p>${said(runs)}</p><p>One late member delays its whole burst. A board that comes too late for its own kind drops into a burst of another kind, and pushes a board of that kind out. So one draw of times says little about a method that works with bursts.</p>`}],
  },
  {
    name: "Move a board", panels: [sharingPicture(0, "With unchanged times"), sharingPicture(1, "With the changed time")], reading: true,
    runs: () => [clocks(), clocks()], knobs: moveBoard,
    text: () => `<p>Choose a board and change its time by a few per cent. The pictures show ${BURSTS} bursts. Is there a board that can take two per cent more or less time without changing who shares bursts?</p>`,
  },
  evidenceStep("KUIPER"),
];

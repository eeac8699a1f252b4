// KUIPER's pictures: bursts over time, who shares a burst with whom, and what a burst's members weigh.

const burstColour = (number) => DATA.bursts[number % DATA.bursts.length];

const burstsPicture = {
  title: "Boards, and the bursts that they share", size: "wide",
  note: () => "Each row is a board. A bar is training, in the colour of the burst that the board then joins. The pale part after it is waiting. A vertical line is a new version.",
  draw(element, [run]) {
    const {clients} = run.settings, span = 14, waiting = run.clock.waiting.length;
    const {g, width, height} = canvasOf(element, `Timeline of ${clients} boards at ${run.now.toFixed(1)} seconds: ${run.server.version} bursts are closed, ${waiting} boards wait.`);
    const left = 62, bottom = 18, row = (height - bottom) / clients, from = Math.max(0, run.now - span), at = (time) => left + ((time - from) / span) * (width - left - 8);
    const bar = (client, begin, end, colour, tall = 1) => {
      if (at(end) < left) return;
      g.fillStyle = colour;
      g.fillRect(Math.max(left, at(begin)), (client + (1 - tall) / 2) * row + 1.5, Math.max(1, Math.min(width, at(end)) - Math.max(left, at(begin)) - 1), row * tall - 3);
    };
    const closes = run.bursts.map((burst) => burst.time);
    for (const job of run.done.filter((one) => (closes[one.into] ?? run.now) >= from)) {
      const colour = burstColour(job.into), closed = closes[job.into] ?? run.now;
      bar(job.client, job.from, job.until, colour);
      g.globalAlpha = 0.35;
      bar(job.client, job.until, closed, colour, 0.5);
      g.globalAlpha = 1;
    }
    for (const job of run.clock.jobs) bar(job.client, job.from, run.now, tone("working"));
    g.fillStyle = tone("ink");
    for (const time of closes.filter((time) => time >= from)) g.fillRect(at(time), 0, 1, height - bottom);
    for (let client = 0; client < clients; client++) {
      write(g, `${client + 1}`, 18, (client + 0.5) * row, {align: "right", colour: run.moved === client ? tone("accent") : tone("ink")});
      write(g, `${run.time(client).toFixed(2)} s`, 24, (client + 0.5) * row);
    }
    for (let time = Math.ceil(from / 2) * 2; time <= from + span; time += 2) write(g, `${time} s`, Math.min(Math.max(at(time), left + 8), width - 14), height - 8, {align: "center"});
  },
};

// How often two boards shared a burst, as a share of the bursts that either took part in.
function sharing(run) {
  const {clients} = run.settings, together = Array.from({length: clients}, () => new Array(clients).fill(0)), alone = new Array(clients).fill(0);
  for (const {members} of run.bursts) for (const a of members) { alone[a]++; for (const b of members) together[a][b]++; }
  return together.map((row, a) => row.map((count, b) => (a === b ? 0 : count / Math.max(1, alone[a] + alone[b] - count))));
}

const sharingPicture = (which, title) => ({
  title, size: "tall half",
  note: () => "The stronger a cell's colour, the more often the two boards share a burst. Full colour means always.",
  draw(element, runs) {
    const run = runs[which], shares = sharing(run), {clients} = run.settings;
    const always = shares.flatMap((row, a) => row.flatMap((share, b) => (a < b && share > 0.9 ? [`${a + 1} with ${b + 1}`] : [])));
    const {g, width, height} = canvasOf(element, `After ${run.bursts.length} bursts, boards that share nearly every burst: ${always.join(", ") || "none"}.`);
    const cell = Math.min((width - 30) / clients, (height - 24) / clients), left = 26, top = 20;
    shares.forEach((row, a) => {
      write(g, `${a + 1}`, 18, top + (a + 0.5) * cell, {align: "right", colour: run.moved === a ? tone("accent") : tone("ink")});
      write(g, `${a + 1}`, left + (a + 0.5) * cell, 10, {align: "center", colour: run.moved === a ? tone("accent") : tone("ink")});
      row.forEach((share, b) => {
        g.fillStyle = a === b ? tone("ground") : tone("empty");
        g.fillRect(left + b * cell, top + a * cell, cell - 1, cell - 1);
        if (a === b) return;
        g.globalAlpha = share;
        g.fillStyle = onGround(run.colour);
        g.fillRect(left + b * cell, top + a * cell, cell - 1, cell - 1);
        g.globalAlpha = 1;
      });
    });
  },
});

const weightsPicture = {
  title: "Weights of the latest burst's members",
  note: () => "A bar is a board's share of the weight, which is images × error. The error is the share of the board's own images that its received model got wrong.",
  draw(element, [run]) {
    const members = run.lastBurst(), sum = members.reduce((total, job) => total + job.weight, 0) || 1;
    const {g, width} = canvasOf(element, members.length ? `Latest burst: ${members.map((job) => `board ${job.client + 1}, ${job.samples} images, error ${percent(job.weight / job.samples)}, weight ${percent(job.weight / sum)}`).join("; ")}.` : "No burst is closed yet.");
    if (!members.length) { write(g, "No burst is closed yet.", 4, 20); return; }
    members.forEach((job, i) => {
      const y = 10 + i * 56, long = (width - 60) * (job.weight / sum);
      write(g, `board ${job.client + 1}: ${job.samples} images × error ${percent(job.weight / job.samples)}`, 4, y + 4, {colour: tone("ink")});
      g.fillStyle = onGround(run.colour);
      g.fillRect(4, y + 16, Math.max(1, long), 20);
      write(g, percent(job.weight / sum), 10 + long, y + 26, {colour: tone("ink")});
    });
  },
};

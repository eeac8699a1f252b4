// Who trains when: a row is a device, a bar a job, coloured by how many versions late its update came.

const WINDOW = 40;

const clockPicture = {
  title: "Who trains when",
  note: () => `Versions late on arrival: ${[0, 2, 6, 20, STALEST].map((late) => `<span><i style="background: ${shade(late)}"></i>${late}</span>`).join(" ")}
    <span><i style="background: ${tone("working")}"></i>still at work</span>`,
  draw(element, [run], step) {
    const {clients, slowClients} = run.settings, quick = clients - slowClients;
    const recent = run.done.filter((job) => job.until > run.now - WINDOW), stale = recent.map((job) => job.staleness);
    const mean = stale.length ? stale.reduce((a, b) => a + b) / stale.length : 0;
    const {g, width, height} = canvasOf(element, `Timeline of ${clients} devices at ${run.now.toFixed(0)} seconds. ${run.clock.jobs.length} train now; recent updates came ${mean.toFixed(1)} versions late on average, and at most ${Math.max(0, ...stale)}.`);
    const left = 62, bottom = 18, row = (height - bottom) / clients, from = Math.max(0, run.now - WINDOW);
    const at = (time) => left + ((time - from) / WINDOW) * (width - left - 8);
    if (slowClients) {
      g.fillStyle = tone("band");
      g.fillRect(0, quick * row, width, slowClients * row);
      write(g, `${slowClients} slow`, 4, (quick + slowClients / 2) * row);
    }
    write(g, `${quick} quick`, 4, (quick * row) / 2);
    for (let time = Math.ceil(from / 10) * 10; time <= from + WINDOW; time += 10) {
      g.fillStyle = tone("line");
      g.fillRect(at(time), 0, 1, height - bottom);
      write(g, `${time} s`, Math.min(Math.max(at(time), left + 8), width - 14), height - 8, {align: "center"});
    }
    const bar = (job, until, colour, marked) => {
      const begin = Math.max(left, at(job.from)), end = Math.min(width, at(until));
      if (end < left) return;
      g.fillStyle = colour;
      g.fillRect(begin, job.client * row + 1, Math.max(1, end - begin - 1), Math.max(1, row - 2));
      if (!marked) return;
      g.strokeStyle = tone("accent");
      g.lineWidth = 2;
      g.strokeRect(begin, job.client * row, Math.max(1, end - begin - 1), row);
    };
    const follows = (job) => step.follow?.(job, run) ?? false;
    for (const job of recent) bar(job, job.until, shade(job.staleness), follows(job));
    for (const job of run.clock.jobs) bar(job, run.now, tone("working"), follows(job));
    g.fillStyle = tone("ink");
    g.fillRect(at(run.now), 0, 1.5, height - bottom);
  },
};

// FedADT's picture: one late model before and after its lesson. FedRevive's: the images that its generator makes up.

const lessonPicture = {
  title: "The latest late model, digit by digit", size: "wide",
  note: () => `<span><i style="background: ${tone("soft")}"></i>today's model</span> <span><i style="background: ${DATA.colours.fedasync[0]}"></i>the late model as it arrives</span> <span><i style="background: ${onGround(DATA.colours.fedadt[0])}"></i>after its lesson</span>`,
  draw(element, [run]) {
    const {latest} = run.server;
    if (!latest) { write(canvasOf(element, "No late model has come yet.").g, "No late model has come yet.", 4, 20); return; }
    if (run.lesson?.of !== latest) run.lesson = {of: latest, ...lesson(run)};
    const series = [["global", tone("soft")], ["model", DATA.colours.fedasync[0]], ["taught", onGround(DATA.colours.fedadt[0])]];
    digitBars(element, series.map(([name, colour]) => ({values: run.lesson[name].classes, colour})),
      `Accuracy: today's model ${percent(run.lesson.global.all)}, the late model ${percent(run.lesson.model.all)}, after its lesson ${percent(run.lesson.taught.all)}.`);
  },
};
function lesson(run) {  // test accuracies of today's model, and of the late one before and after
  const {global, model, taught} = run.server.latest, test = (x) => accuracy(NET, x, run.data, run.data.test);
  return {global: test(global), model: test(model), taught: test(taught)};
}

const galleryPicture = {
  title: "Images that the generator made up", size: "tall",
  note: () => "The latest batches, newest first. Above each image is the digit that was asked for. It is bold if today's model reads the image as that digit.",
  draw(element, [run]) {
    const {pool} = run.server, total = pool.labels.length;
    const {g, width, height} = canvasOf(element, total ? `${total} made-up images; today's model reads ${percent(asAsked(run))} of them as the digit that was asked for.` : "Nothing is made up yet.");
    if (!total) { write(g, `Nothing is made up before version ${run.server.settings.frozenUntil}.`, 4, 20); return; }
    const columns = Math.max(5, Math.min(10, Math.floor(width / 52))), cell = Math.min(64, width / columns), rows = Math.floor(height / (cell + 16)), read = readings(run);
    const {low, high} = run.server.settings.generator;
    for (let i = 0; i < Math.min(total, rows * columns); i++) {
      const index = total - 1 - i, x = (i % columns) * cell, y = Math.floor(i / columns) * (cell + 16), dot = (cell - 6) / 8;
      g.font = `${read[index] === pool.labels[index] ? "bold " : ""}13px system-ui, sans-serif`;
      write(g, String(pool.labels[index]), x + cell / 2, y + 8, {align: "center", colour: read[index] === pool.labels[index] ? tone("ink") : tone("soft")});
      pool.images[index].forEach((value, k) => {
        const grey = Math.round(255 * (1 - (value - low) / (high - low)));
        g.fillStyle = `rgb(${grey}, ${grey}, ${grey})`;
        g.fillRect(x + 3 + (k % 8) * dot, y + 16 + Math.floor(k / 8) * dot, dot + 0.5, dot + 0.5);
      });
    }
  },
};
function readings(run) {  // the digits that today's model reads in the pool
  const {z} = forward(NET, run.server.x, run.server.rows(run.server.pool.labels.map((_, i) => i)), run.server.pool.labels.map((_, i) => i));
  return run.server.pool.labels.map((_, i) => largest(z, 10 * i, 10));
}
function asAsked(run) {
  const read = readings(run), {labels} = run.server.pool;
  return labels.filter((label, i) => label === read[i]).length / labels.length;
}

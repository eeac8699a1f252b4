// Accuracy over time, a line a run, each with its name at its end.

const accuracyPicture = {
  title: "Test images read correctly",
  note: () => "",
  draw(element, runs, step) {
    const said = runs.map((run) => `${run.name} ${percent(run.last.all)}`).join(", ");
    const {g, width, height} = canvasOf(element, `Accuracy over time; at ${runs[0].now.toFixed(0)} seconds: ${said}.`);
    const left = 38, bottom = 20, top = 8, right = Math.min(170, 14 + Math.max(...runs.map((run) => g.measureText(run.name).width)) + 44);
    const end = Math.max(step.end ?? 20, ...runs.map((run) => run.now));
    const x = (time) => left + (time / end) * (width - left - right), y = (value) => top + (1 - value) * (height - bottom - top);
    for (const value of [0, 0.25, 0.5, 0.75, 1]) {
      g.fillStyle = tone("line");
      g.fillRect(left, y(value), width - left - right, 1);
      write(g, percent(value), left - 5, y(value), {align: "right"});
    }
    for (const time of [0, end / 2, end]) write(g, `${time.toFixed(0)} s`, x(time), height - 8, {align: "center"});
    const labels = [];
    runs.forEach((run) => {
      const shown = run.curve.length > 2 * width ? run.curve.filter((_, i) => i % Math.ceil(run.curve.length / width) === 0) : run.curve;
      g.strokeStyle = onGround(run.colour);
      g.lineWidth = run.past ? 1.2 : 2;
      g.globalAlpha = run.past ? 0.5 : 1;
      g.setLineDash(run.dash ?? []);
      g.beginPath();
      shown.forEach(([time, value], i) => (i ? g.lineTo(x(time), y(value)) : g.moveTo(x(time), y(value))));
      g.stroke();
      const latest = run.curve.slice(-10);
      labels.push({run, at: y(latest.reduce((sum, [, value]) => sum + value, 0) / latest.length)});
    });
    labels.sort((a, b) => a.at - b.at).forEach((label, i) => {
      if (i && label.at < labels[i - 1].at + 15) label.at = labels[i - 1].at + 15;
      label.at = Math.min(label.at, y(0) - 4 - 15 * (labels.length - 1 - i));  // above the times, with room for those below
      g.globalAlpha = 1;
      g.strokeStyle = onGround(label.run.colour);
      g.lineWidth = 3;
      g.setLineDash(label.run.dash ?? []);
      g.beginPath();
      g.moveTo(width - right + 6, label.at);
      g.lineTo(width - right + 24, label.at);
      g.stroke();
      g.setLineDash([]);
      write(g, label.run.name, width - right + 29, label.at, {colour: tone("ink")});
    });
    (step.marks ?? []).forEach(([time, words], i) => {
      g.fillStyle = tone("soft");
      g.fillRect(x(time), top, 1, height - bottom - top);
      write(g, words, x(time) + 3, height - bottom - 8 - 13 * (i % 3));
    });
  },
};

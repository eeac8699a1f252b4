// Accuracy of each digit, and what FedEcho's store says of each digit.

const ownedBySlow = (run) => Array.from({length: 10}, (_, digit) => {  // share of a digit's images that slow devices own
  const count = (parts) => parts.flat().filter((index) => run.data.labels[index] === digit).length;
  return count(run.parts.slice(run.settings.clients - run.settings.slowClients)) / count(run.parts);
});

// Bars by digit; series are {name, colour, values, hollow}.
function digitBars(element, series, describe, ringed = []) {
  const {g, width, height} = canvasOf(element, describe), step = width / 10, bottom = 26, top = 20;
  for (let digit = 0; digit < 10; digit++) {
    const wide = (step * 0.76) / series.length;
    series.forEach(({values, colour}, i) => {
      const value = values[digit], x = digit * step + step * 0.12 + i * wide, tall = value * (height - bottom - top);
      g.fillStyle = tone("empty");
      g.fillRect(x, top, wide - 1, height - bottom - top);
      g.fillStyle = colour;
      g.fillRect(x, height - bottom - tall, wide - 1, tall);
    });
    const middle = (digit + 0.5) * step;
    if (series.length === 1) {
      g.font = step < 34 ? "10px system-ui, sans-serif" : "12px system-ui, sans-serif";
      write(g, percent(series[0].values[digit]), middle, 10, {align: "center"});
    }
    g.font = "12px system-ui, sans-serif";
    write(g, String(digit), middle, height - 12, {colour: tone("ink"), align: "center"});
    if (!ringed[digit]) continue;
    g.strokeStyle = tone("accent");
    g.lineWidth = 2;
    g.beginPath();
    g.arc(middle, height - 13, 10, 0, 2 * Math.PI);
    g.stroke();
  }
}

const classesPicture = {
  title: "Accuracy of each digit",
  note: () => "A ring marks a digit if slow devices own more than half of its images.",
  draw(element, runs) {
    const run = runs.at(-1), values = run.last.classes;
    digitBars(element, [{values, colour: onGround(run.colour)}], `Accuracy by digit, ${run.name}: ${values.map((value, digit) => `${digit} ${percent(value)}`).join(", ")}.`,
      ownedBySlow(run).map((share) => share > 0.5));
  },
};

const storePicture = {
  title: "What FedEcho's server stores",
  note: () => "A row is a device, and a column is a digit. The stronger a cell's colour, the surer that device's latest model was of the digit. The number on the right says how many versions ago a slow device last reported.",
  draw(element, runs) {
    const run = runs.find((one) => one.server.logits), store = run?.server.logits;
    const slow = run ? [...store.keys()].filter((client) => run.isSlow(client)).length : 0;
    const {g, width, height} = canvasOf(element, store ? `Predictions of ${store.size} of ${run.settings.clients} devices are stored. Of these devices, ${slow} are slow.` : "Only FedEcho stores predictions.");
    if (!store) { write(g, "Only FedEcho stores predictions.", 4, 20); return; }
    const {clients, slowClients, unlabelled} = run.settings, row = (height - 18) / clients, left = 52, right = 44, column = (width - left - right) / 10;
    write(g, "quick", 4, ((clients - slowClients) * row) / 2);
    write(g, "slow", 4, (clients - slowClients / 2) * row);
    for (let digit = 0; digit < 10; digit++) write(g, String(digit), left + (digit + 0.5) * column, height - 8, {colour: tone("ink"), align: "center"});
    for (let client = 0; client < clients; client++) {
      const z = store.get(client), p = z && softmax(z, 10);
      for (let digit = 0; digit < 10; digit++) {
        let sure = 0, of = 0;
        run.data.server.slice(0, unlabelled).forEach((index, i) => { if (p && run.data.labels[index] === digit) { sure += p[10 * i + digit]; of++; } });
        g.fillStyle = tone("empty");
        g.fillRect(left + digit * column, client * row, column - 1, row - 1);
        g.globalAlpha = p ? sure / of : 0;
        g.fillStyle = onGround(run.colour);
        g.fillRect(left + digit * column, client * row, column - 1, row - 1);
        g.globalAlpha = 1;
      }
      g.font = "10px system-ui, sans-serif";
      const aside = row < 11 ? 19 * (client % 2) : 0;  // numbers of low rows take turns in two columns
      if (z && run.isSlow(client)) write(g, String(run.server.version - run.heardAt.get(client)), width - right + 4 + aside, (client + 0.5) * row);
    }
  },
};

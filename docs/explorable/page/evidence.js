// The last step of a method's page: its recorded leads over FedBuff, read from docs/findings.md when the page was built.

const KINDS_OF_LEAD = {plain: "plain FedBuff", rate1: "server rate fixed", tuned: "both tuned"};
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`;
const leadOf = (method, setting) => DATA.leads[method].find((row) => !setting || row.setting === setting);

// Whether a lead's interval excludes zero, and on which side, in words.
function compared([lead, low, high], who, other, apart) {
  return low > 0 || high < 0 ? `${who} ends <b>${Math.abs(lead).toFixed(1)} points ${lead > 0 ? "above" : "below"}</b>${other}` : `we cannot distinguish ${apart}`;
}
function verdict(method, row) {
  const plain = compared(row.plain, method, " plain FedBuff", `${method} from plain FedBuff`), tuned = compared(row.tuned, "it", "", "the two");
  const never = [row.plain, row.tuned].every(([, low, high]) => low <= 0 && high >= 0);
  const said = `${row.setting ? `${row.setting.startsWith("bias") ? "at" : "with the"} ${row.setting}, ` : ""}${plain}${never ? ", not even once both are tuned" : `; once both are tuned, ${tuned}`}.`;
  return `${said[0].toUpperCase()}${said.slice(1)}${row.paper ? ` The paper reports ${row.paper}.` : ""}`;
}

const leadsPicture = (method, rows) => ({
  title: `How much higher ${method} ends than FedBuff, in points`, size: rows.length > 1 ? "wide" : "",
  note: () => `A dot is a mean over seeds, and its bar is the interval. The dot covers a short bar.${rows.some((row) => row.paper) ? " An open diamond is what the paper reports." : ""} Right of the line, ${method} ends higher; left of it, FedBuff does.`,
  draw(element) {
    const read = rows.map((row) => `${row.setting} ${Object.entries(KINDS_OF_LEAD).map(([kind, name]) => `${name} ${signed(row[kind][0])}`).join(", ")}`.trim()).join("; ");
    const {g, width, height} = canvasOf(element, `${method}'s lead over FedBuff in points: ${read}.`);
    const printed = (row) => Number(row.paper || 0), ends = rows.flatMap((row) => [printed(row), ...Object.keys(KINDS_OF_LEAD).flatMap((kind) => row[kind])]);
    const left = 122, right = 16, bottom = 22, low = Math.min(-2, ...ends), high = Math.max(2, ...ends);
    const x = (value) => left + ((value - low) / (high - low)) * (width - left - right), tall = (height - bottom) / rows.length, ticks = high - low > 12 ? 5 : 2;
    for (let tick = Math.ceil(low / ticks) * ticks; tick <= high; tick += ticks) {
      g.fillStyle = tick ? tone("line") : tone("ink");
      g.fillRect(x(tick), 0, 1, height - bottom);
      write(g, tick ? `${tick > 0 ? "+" : "−"}${Math.abs(tick)}` : "0", x(tick), height - 9, {align: "center"});
    }
    rows.forEach((row, i) => {
      const head = row.setting ? 24 : 0, top = i * tall, step = (tall - head) / 3;
      g.font = "bold 13px system-ui, sans-serif";
      if (head) write(g, row.setting, 4, top + 12, {colour: tone("ink")});
      g.font = "12px system-ui, sans-serif";
      if (row.paper) diamond(g, x(printed(row)), top + head + step / 2);
      Object.entries(KINDS_OF_LEAD).forEach(([kind, name], k) => {
        const y = top + head + (k + 0.5) * step, [lead, from, to] = row[kind];
        write(g, name, 4, y, {colour: tone("ink")});
        g.fillStyle = onGround(colourOf(method.toLowerCase()));
        g.fillRect(x(from), y - 1.5, x(to) - x(from), 3);
        g.beginPath();
        g.arc(x(lead), y, 6, 0, 7);
        g.fill();
      });
    });
  },
});
function diamond(g, x, y) {
  Object.assign(g, {strokeStyle: tone("ink"), lineWidth: 1.5});
  g.beginPath();
  for (const [dx, dy] of [[0, -7], [7, 0], [0, 7], [-7, 0]]) g.lineTo(x + dx, y + dy);
  g.closePath();
  g.stroke();
}

function evidenceStep(method, rate = "is 1") {
  const all = DATA.leads[method], rows = [all[0], ...all.slice(1).slice(-1)];  // two settings at most: the first and the last
  return {
    name: "What our runs say", panels: [leadsPicture(method, rows)], reading: true, runs: () => [],
    text: () => `${rows.map((row) => `<p>${verdict(method, row)}</p>`).join("")}
      <p>One draw on a page decides nothing, so these are recorded runs with ten seeds or more, on small stand-ins for the paper's images and models. <b>Plain FedBuff</b> weighs all updates alike, and its server learning rate ${rate}. In the second row that rate stays, and all else is searched. In the third, every rate of both methods is searched.</p>
      ${method === "KUIPER" ? "<p>The <b>bias</b> says how unlike the boards' images are: 0 means alike, and 1, at which the paper reports its lead, means most unlike.</p>" : ""}
      <p class="note">From <a href="findings.md">our findings</a>, which name the runs and say more.</p>`,
  };
}

// The last step of a method's page: what our recorded runs say of it, read from docs/findings.md when the page was built.

function evidenceStep(method) {
  const lead = DATA.leads[method], sections = Object.entries(DATA.findings);
  return {
    name: "What our runs say", panels: [], reading: true, runs: () => [],
    text: () => `<p>One draw on a page decides nothing. The project ran ${method} with ten seeds or more, once with the server learning rate 1 (or the printed one) for FedBuff, and once with every rate searched.
      Numbers are differences in accuracy, in points, with intervals.${method === "KUIPER" ? " The bias says how unlike the boards' images are: 0 means alike, and 1 means most unlike." : ""}</p>
      <p>${method}'s lead over FedBuff: <b>${lead.rate1}</b> at the fixed rate, <b>${lead.tuned}</b> tuned.</p>
      ${sections.map(([title, bullets]) => `<h3>${title}</h3><ul>${bullets.map((bullet) => `<li>${bullet}</li>`).join("")}</ul>`).join("")}
      <p class="note">From docs/findings.md, where each number names the runs that it compares.</p>`,
  };
}

"""Write the numbers of README.md and of docs/findings.md, fair.md, differences.md and results.md anew from what is recorded.

``make docs`` after a record has changed; then read what the sentences around the tables say. It changes
differences with their intervals in rows that name their cells, README's copy of the first table, FedEcho's table and the
counts of verdicts, the laptop tier's verdicts that other reports show, and ``docs/pictures/together.svg``; the tests hold
all of them to the records.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import test_fair as comparisons
import test_findings as findings
import test_readme as readme
from matplotlib import rc_context, rcParams

from asyncfl_lite.base.style import use_style
from asyncfl_reproduction.digests import keep
from asyncfl_reproduction.report import Recorded
from asyncfl_reproduction.report.decided import FILE, decided
from asyncfl_reproduction.report.together import draw_together, together

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "asyncfl_reproduction/results"


def row_of(line: str) -> str:
    """Return a line of a table whose last column names one or two cells, with today's numbers; others as they are."""
    parts = [part.strip() for part in line.strip("|").split("|")]
    cells = re.findall(r"`([a-z]+/[^`]+)`", parts[-1])
    if not line.startswith("|") or not cells:
        return line
    if len(cells) == 1:
        parts[-2] = findings.worth_of_tuning(cells[0])
    else:
        plain = ["printed"] * (len(parts) > 5)
        parts[2:-1] = [findings.difference(*cells, one) for one in (*plain, findings.fixed(cells[0]), "tuned")]
    return "| " + " | ".join(parts) + " |"


def row_of_comparisons(line: str) -> str:
    """Return a row of docs/fair.md with today's numbers."""
    parts = [part.strip() for part in line.strip("|").split("|")]
    if "` − `" not in line or not line.startswith("|"):
        return line
    cells = re.findall(r"`([^`]+)`", parts[-1])
    parts[1:-1] = [comparisons.difference(*cells, column) for column in comparisons.columns_of(parts)]
    return "| " + " | ".join(parts) + " |"


def refreshed_fair(text: str) -> str:
    """Return docs/fair.md with today's differences and the sentences that count them."""
    text = "\n".join(map(row_of_comparisons, text.splitlines())) + "\n"
    for begin, end, said in comparisons.sentences(text):
        text = re.sub(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _, said=said: said, text, flags=re.S)
    return text


def refreshed_findings(text: str) -> str:
    """Return docs/findings.md with today's differences, those of its first table and those that notes explain."""
    text = "\n".join(map(row_of, text.splitlines())) + "\n"
    for number, source in findings.sources(text).items():
        text = re.sub(rf"([+−]\d+\.\d \[[^\]]*\]|not run)(?=\[\^{number}\](?!:))", findings.noted(*source), text)
    left = findings.left_over((ROOT / "docs/results.md").read_text())
    return re.sub(r"Of \d+ claims \d+ are open and \d+ were not run", left, text)


def refreshed_differences(text: str) -> str:
    """Return docs/differences.md with today's differences."""
    text = "\n".join(map(row_of, text.splitlines())) + "\n"
    for row in findings.course():
        text = re.sub(rf"^\| {row[0]} \|.*$", "| " + " | ".join(row) + " |", text, flags=re.M)
    return text


def refreshed_results(text: str) -> str:
    """Return docs/results.md with FedEcho's accuracies and the counts of verdicts."""
    smoke, laptop = (
        readme.recorded(tier, "fedecho/table2/large-dir0.1/", "last5_accuracy") for tier in ("smoke", "laptop")
    )
    for title, paper, *_ in readme.rows_below("## FedEcho against FedBuff", text):
        cell = readme.fedechos_cell(title)
        row = f"| {title} | {paper} | {smoke[cell]} | {laptop[f'{cell}@server-rate']} | {laptop[cell]} |"
        text = re.sub(rf"^\| {re.escape(title)} \| {re.escape(paper)} \|.*$", row, text, flags=re.M)
    before, there, after = text.partition("| CIFAR-10 (JPEG q75) |")
    for title, ours in readme.photographs().items():
        after = re.sub(rf"^\| {title} \|.*$", f"| {title} | {' | '.join(ours)} |", after, flags=re.M)
    text = before + there + after
    for tier in ("smoke", "laptop"):
        found = Recorded(ROOT / "asyncfl_reproduction/cells" / f"{tier}.yaml", ROOT / "nothing", KEPT)
        for paper, of, claims, *_ in readme.rows_below("## Claims, paper by paper", text):
            if of == tier:
                counts = " | ".join(map(str, found.verdicts(paper.lower())))
                text = re.sub(
                    rf"^\| {paper} \| {tier} \|.*$", f"| {paper} | {tier} | {claims} | {counts} |", text, flags=re.M
                )
    keep(decided(found), KEPT / FILE, index=False)
    for kind, counts in findings.counts_by_kind(found).items():  # of the laptop tier
        text = re.sub(rf"^\| {kind} \|.*$", f"| {kind} | {' | '.join(counts)} |", text, flags=re.M)
    said = textwrap.fill(findings.first_sentence(text), 120)
    return re.sub(r"Of \d+ claims that training could have refuted[^.]*\.", said, text)


def picture(path: Path) -> None:
    """Draw the papers' leads beside ours, the same bytes for the same records."""
    with rc_context():
        use_style()
        rcParams.update({"svg.hashsalt": "together", "svg.fonttype": "path"})
        draw_together(together()).savefig(
            path, metadata={"Date": None, "Title": "The papers' leads over FedBuff, and ours"}
        )


def main() -> None:
    """Write the five pages and the picture that two of them show."""
    picture(ROOT / "docs/pictures/together.svg")
    changes = {"results": refreshed_results, "differences": refreshed_differences, "findings": refreshed_findings}
    changes |= {"fair": refreshed_fair}
    for page, change in changes.items():
        name = f"docs/{page}.md"
        (ROOT / name).write_text(change((ROOT / name).read_text()))


if __name__ == "__main__":
    main()

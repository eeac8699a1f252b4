"""Write paper/asyncfl-reproduction.pdf: every number is read from the records, every figure is the report's own.

``make paper``. The text is ``manuscript.typ``. ``lookups.py`` computes what it looks up, ``tables.py`` its tables, and
``facts.py`` its other numbers. This script writes them to a file, draws two figures, and lets typst set the pages.
"""

from __future__ import annotations

import json
from typing import Any

import typst
from facts import facts, of_all
from lookups import COLUMNS, HERE, SEARCHED, asked_for, recorded
from matplotlib import rc_context
from tables import contradicted, headlines, rows, verdict_counts

from asyncfl_lite.base.style import use_style
from asyncfl_reproduction.claims.checking import TRAINED
from asyncfl_reproduction.grid.columns import FIXED
from asyncfl_reproduction.report.forest import draw_forest
from asyncfl_reproduction.report.searches import draw_tries, tries

BUILD = HERE / "build"
TRIED = ("fedecho/table2/large-dir0.1", "kuiper/fig3b/bias0", "fedadt/table1/mnist-dir0.1")
"""Studies that the figure of tries shows."""


def main() -> None:
    """Build the PDF."""
    BUILD.mkdir(exist_ok=True)
    text = (HERE / "manuscript.typ").read_text(encoding="utf-8")
    table, in_points, in_ratios = headlines()
    counts, sentence = verdict_counts()
    asked = asked_for(text)
    numbers: dict[str, Any] = {
        "found": asked,
        "columns": COLUMNS | {"either": FIXED},
        "columns_in_order": list(COLUMNS.values()),
        "headlines": in_points,
        "sooner": in_ratios,
        "counts": counts,
        **rows(),
        "facts": facts() | {"sentence": sentence, "contradicted": contradicted(),
                            "trained": next(row[1] for row in counts[1:] if row[0] == TRAINED)},
    }  # fmt: skip
    numbers["facts"] |= of_all()
    (BUILD / "numbers.json").write_text(json.dumps(numbers, ensure_ascii=False, indent=1), encoding="utf-8")
    with rc_context():
        use_style()
        draw_forest(table).savefig(BUILD / "forest.svg")
        chosen = [cell for cell in recorded(SEARCHED).cells.values() if cell.name.rpartition("/")[0] in TRIED]
        draw_tries(tries(chosen)).savefig(BUILD / "tries.svg")
    output = HERE / "asyncfl-reproduction.pdf"
    typst.compile(HERE / "manuscript.typ", output=output, root=HERE)
    print(f"paper: {output.name}, {len(asked)} look-ups, {numbers['facts']['runs']} runs")


if __name__ == "__main__":
    main()

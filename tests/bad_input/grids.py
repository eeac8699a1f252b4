"""Grid files that cannot be: the text of a tier's file or of a paper's file, in place of a sound one."""

from __future__ import annotations

TIER = "tier: smoke\npapers: [toy.yaml]\n"
PAPER = "paper: toy\ntiers: {smoke: {seeds: [0]}}\ncells: {toy/a: {}}\n"


def cells(text: str) -> str:
    """A sound paper's file but for its cells."""
    return PAPER.replace("cells: {toy/a: {}}", f"cells: {text}")


def tiers(text: str) -> str:
    """A sound paper's file but for its tiers."""
    return PAPER.replace("{smoke: {seeds: [0]}}", text)


LAUGHS = "b0: &b0 [x, x]\n" + "".join(f"b{n + 1}: &b{n + 1} [{', '.join([f'*b{n}'] * 9)}]\n" for n in range(30))
"""9**30 words when written out, a few when not."""
GRIDS: list[tuple[str, str | bytes, str | bytes, tuple[str, ...]]] = [
    ("tier-empty", "", PAPER, ("smoke.yaml: must be a mapping of tier, papers, only, import, columns, part, seeds, got None",)),
    ("tier-cut-off", "tier: [smoke", PAPER, ("smoke.yaml: not YAML (", "line 1")),
    ("tier-not-text", b"\xff\xfe\x00tier", PAPER, ("smoke.yaml: must be UTF-8 text",)),
    ("tier-unnamed", "papers: [toy.yaml]", PAPER, ("smoke.yaml: tier: must be given",)),
    ("tier-a-path", "tier: ../up\npapers: [toy.yaml]", PAPER, ("smoke.yaml: tier: must be a folder's name of letters, digits", "got '../up'")),
    ("tier-key-twice", TIER + "tier: smoke", PAPER, ("smoke.yaml: not YAML ('tier' is there twice", "line 3")),
    ("tier-only-no-cell", TIER + "only: [other/*]", PAPER, ("smoke.yaml: only: no cell of 1 matches 'other/*', such as 'toy/a'",)),
    ("tier-part-a-path", TIER + "part: a/b", PAPER, ("smoke.yaml: part: must be a folder's name of letters, digits", "got 'a/b'")),
    ("tier-seeds-twice", TIER + "seeds: [1, 1]", PAPER, ("smoke.yaml: seeds: must be different seeds, got [1, 1]",)),
    ("paper-missing", "tier: smoke\npapers: [toi.yaml]", PAPER, ("toi.yaml: No such file or directory; there are: smoke.yaml, toy.yaml",)),
    ("paper-key-misspelt", TIER, PAPER + "cell: {}", ("toy.yaml: setting: 'cell' is not known; did you mean 'cells'?",)),
    ("python-in-it", TIER, "!!python/object/apply:os.system ['true']", ("toy.yaml: not YAML (could not determine a constructor",)),
    ("number-octal", TIER, cells("{toy/a: {settings: {clients: 010}}}"), ("toy.yaml: not YAML (010 is 8 in YAML 1.1, and 10 in 1.2; write the number that you mean", "line ")),
    ("number-a-time", TIER, cells("{toy/a: {settings: {horizon: 1:30}}}"), ("toy.yaml: not YAML (1:30 is 90 in YAML 1.1; write 90, or '1:30' in quotes",)),
    ("a-date", TIER, cells("{toy/a: {settings: {delay: 2026-01-02}}}"), ("toy.yaml: cell toy/a: delay: must be a valid string, got datetime.date(2026, 1, 2); a date in a file is a text if it is in quotes",)),
    ("word-for-true", TIER, tiers("{smoke: {seeds: [yes]}}"), ("toy.yaml: tiers.smoke.seeds.0: must be a valid integer, got 'yes'",)),
    ("number-without-end", TIER, cells("{toy/a: {settings: {seed: " + "9" * 5000 + "}}}"), ("toy.yaml: not YAML (", "4300")),
    ("a-billion-laughs", TIER, f"{LAUGHS}paper: *b30", ("toy.yaml: paper: must be a valid string, got [[",)),
    ("laughs-for-a-name", TIER, f"paper: {{}}\ndefinitions:\n  {LAUGHS.replace(chr(10), chr(10) + '  ')}\ntiers: {{smoke: {{seeds: *b30}}}}\ncells: {{toy/a: {{}}}}", ("toy.yaml: paper: must be a valid string, got {}",)),
    ("no-tiers", TIER, tiers("{}"), ("toy.yaml: tier: 'smoke' is not known. Allowed: none",)),
    ("tier-it-lacks", TIER, tiers("{smok: {seeds: [0]}}"), ("toy.yaml: tier: 'smoke' is not known; did you mean 'smok'?",)),
    ("no-seeds", TIER, tiers("{smoke: {}}"), ("toy.yaml: tiers.smoke.seeds: must be given",)),
    ("seeds-twice", TIER, tiers("{smoke: {seeds: [1, 2, 1]}}"), ("toy.yaml: tiers.smoke.seeds: must be different seeds, got [1, 2, 1]",)),
    ("no-cells", TIER, cells("{}"), ("toy.yaml: cells: must have at least 1 item, got {}",)),
    ("cell-key-misspelt", TIER, cells("{toy/a: {setings: {}}}"), ("toy.yaml: cells.toy/a: 'setings' is not known; did you mean 'settings'?",)),
    ("cell-twice", TIER, cells("{toy/a: {}, toy/a: {settings: {rounds: 3}}}"), ("toy.yaml: not YAML ('toy/a' is there twice",)),
    ("cell-in-two-papers", "tier: smoke\npapers: [toy.yaml, ./toy.yaml]", PAPER, ("smoke.yaml: cell toy/a: there are two of this name",)),
    ("cell-outside", TIER, cells("{../../a: {}}"), ("toy.yaml: cell '../../a': each part of its name must be a folder's name of letters",)),
    ("cell-with-a-break", TIER, cells('{"a\\nb": {}}'), (r"toy.yaml: cell 'a\nb': each part of its name must be a folder's name of letters",)),
    ("cell-seeds-negative", TIER, cells("{toy/a: {seeds: {smoke: [-1]}}}"), ("toy.yaml: cells.toy/a.seeds.smoke.0: must be greater than or equal",)),
    ("cell-seeds-of-a-tier-misspelt", TIER, cells("{toy/a: {seeds: {smok: [1]}}}"), ("toy.yaml: cell toy/a: seeds: 'smok' is not known; did you mean 'smoke'",)),
    ("cell-tier-misspelt", TIER, cells("{toy/a: {tiers: {smok: {}}}}"), ("toy.yaml: cell toy/a: tiers: 'smok' is not known; did you mean 'smoke'?",)),
    ("axis-it-lacks", TIER, cells("{'toy/{law}': {over: {delay: {a: {}}}}}"), ("toy.yaml: cell toy/{law}: no axis 'law' to fill in; there are: delay",)),
    ("axis-of-an-object", TIER, cells("{'toy/{delay.__class__}': {over: {delay: {a: {}}}}}"), ("no axis 'delay.__class__' to fill in; there are: delay",)),
    ("axis-not-closed", TIER, cells("{'toy/{delay': {over: {delay: {a: {}}}}}"), ("toy.yaml: cell toy/{delay: no axis", "there are: delay")),
    ("axis-not-in-the-name", TIER, cells("{toy/a: {over: {delay: {a: {}, b: {}}}}}"), ("toy.yaml: cell toy/a: there are two of this name",)),
    ("left-out-of-no-axis", TIER, cells("{'toy/{d}': {over: {d: {a: {}}}, without: [{e: a}]}}"), ("toy.yaml: cell toy/{d}: without: 'e' is not known. Allowed: d",)),
    ("left-out-everything", TIER, cells("{'toy/{d}': {over: {d: {a: {}}}, without: [{d: a}]}}"), ("smoke.yaml: only: no cell of 0 matches '*'",)),
    ("printed-row-no-text", TIER, cells("{toy/a: {published: [{artefact: 2}]}}"), ("toy.yaml: cells.toy/a.published.0.artefact: must be a valid string, got 2",)),
]  # fmt: skip

"""Entry to the league: read a file, check the rules, run the newcomer, and write its page."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from asyncfl_lite.base.errors import ConfigError, how_many
from asyncfl_lite.runs.results import Result
from asyncfl_reproduction.grid.cost import HOURS_UNASKED, duration
from asyncfl_reproduction.home import field_in
from asyncfl_reproduction.league.entry import Entry, check_rules, read_entry
from asyncfl_reproduction.league.field import TIER, Place, read_places
from asyncfl_reproduction.league.page import Outcome, write_page
from asyncfl_reproduction.league.run import TRIAL, Newcomer, Trial
from asyncfl_reproduction.league.standings import standings
from asyncfl_reproduction.report.recorded import Recorded


def enter(
    file: str | Path,
    tier_file: Path,
    runs: Path,
    kept: Path,
    *,
    quick: bool = False,
    workers: int = 1,
    yes: bool = False,
    say: Callable[[str], None] = print,
) -> Path:
    """Run the method in a file against the league's recorded methods, and return the path of its page.

    Raises:
        ConfigError: in one line, if the file is not an entry, the method breaks a rule, its grid is too large, or
            nothing of the field is recorded.
        SimulationError: if a run fails, or its number of client updates is not the field's.
    """
    places = read_places(tier_file, quick=quick)
    entry = read_entry(file, {method for place in places for method in place.searches})
    newcomer = Newcomer(entry, places, runs / TIER / entry.folder, 0 if quick else None)
    count = newcomer.count  # makes all its searches, so that an error in its grid is reported first
    if not (newcomer.folder / TRIAL).exists():
        say(f"{entry.name}: checking that it keeps the rules of every method")
        check_rules(entry)
    if newcomer.untried:
        say(f"{entry.name}: {newcomer.untried}")
    field = _recorded(places, tier_file, runs, kept)
    trial = newcomer.trial()
    _say_cost(newcomer, trial, count, workers, yes, say)
    own = newcomer.run(workers, say)
    found = [standings(place, entry.name, _in_place(place, entry.name, field, own)) for place in places]
    page = runs / TIER / f"{entry.folder}.html"
    write_page(page, Outcome(newcomer, trial, found, quick, earlier_looks(page, entry)))
    for one in found:
        said = ", ".join(f"{verdict} {number}" for verdict, number in one.counts().items())
        say(f"{one.place.name}, {one.place.column}: of {how_many(len(one.rows) - 1, 'method')} {said or 'none'}")
    say(f"page: {page}")
    return page


def earlier_looks(page: Path, entry: Entry) -> list[str]:
    """Return the names of earlier pages on other code under the same method name, oldest first."""
    of_name = re.compile(rf"{re.escape(entry.name)}-[0-9a-f]{{8}}\.html")
    found = [path for path in page.parent.glob("*.html") if of_name.fullmatch(path.name) and path != page]
    return [path.name for path in sorted(found, key=lambda path: path.stat().st_mtime_ns)]


def _recorded(places: Sequence[Place], tier_file: Path, runs: Path, kept: Path) -> Mapping[str, list[Result]]:
    """Map each cell of the league's own methods to its recorded runs; raise an error if there are none."""
    field = Recorded(tier_file, runs, field_in(kept)).results
    wanted = {place.cell(method) for place in places for method in place.searches}
    if not wanted.intersection(field):
        raise ConfigError(
            f"league: nothing of the field is recorded in {kept / TIER} or {runs / TIER}; "
            "`asyncfl-lite league --field` records it, and says first what that costs"
        )
    return field


def _in_place(
    place: Place, name: str, field: Mapping[str, list[Result]], own: Mapping[str, list[Result]]
) -> dict[str, list[Result]]:
    found = {method: field.get(place.cell(method), []) for method in place.searches}
    return {**found, name: own[place.cell(name)]}


def _say_cost(
    newcomer: Newcomer, trial: Trial, count: int, workers: int, yes: bool, say: Callable[[str], None]
) -> None:
    """Print the number of runs and a bound on their time; raise an error if that is too long and ``yes`` is false."""
    seconds = count * trial.seconds / workers
    runs = f"{how_many(count, 'run')} of {how_many(trial.updates, 'client update')}"
    say(
        f"{newcomer.entry.name}: {runs}; alone one takes {trial.seconds:.1f} "
        f"seconds, so all take at most about {duration(seconds)} with {workers} at a time, less in lockstep"
    )
    if seconds > 3600 * HOURS_UNASKED and not yes:
        raise ConfigError(f"yes: needed above {HOURS_UNASKED:g} hours; add --yes, or YES=1 with make")

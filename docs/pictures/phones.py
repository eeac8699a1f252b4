"""Draw the README's picture, an hour of ten phones that moves: ``python docs/pictures/phones.py``.

The clock is the package's own, with the phones of lesson 00. The picture is one SVG file, animated by CSS. Programs
that do not move it show the end of the hour.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib import colormaps
from matplotlib.colors import to_hex

from asyncfl_course.explore import run_clock
from asyncfl_lite.base.style import ACCENT, NEUTRAL

PICTURE = Path(__file__).with_name("phones.svg")
DURATIONS = [1.0] * 9 + [59.5]
"""Minutes that each phone's job takes, as in lesson 00."""
BUFFER, HOUR = 5, 60.0
LEFT, RIGHT, TOP, LANE = 96.0, 860.0, 62.0, 21.0
SECONDS, MOVING = 12, 80
"""Length of the animation, and the percentage of it in which time moves."""
INK = "#1f2937"


def hour() -> pd.DataFrame:
    """Return all updates of the hour."""
    many = len(DURATIONS)
    fleet = {"durations": DURATIONS, "clients": many, "concurrency": many, "buffer_size": BUFFER}
    return run_clock("per_client", **fleet, versions=None, horizon=HOUR).updates


def across(minute: float) -> float:
    """Return a minute's horizontal position."""
    return LEFT + (RIGHT - LEFT) * minute / HOUR


def _text(said: str, x: float, y: float, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{said}</text>'


def alternative(updates: pd.DataFrame) -> str:
    """Return what the picture shows, in words."""
    slow = updates[updates["client"] == len(DURATIONS) - 1]
    return (
        "An hour of ten phones. Nine need a minute for a job, one needs 59 and a half. The server waits for nobody, "
        f"and makes a version of every {BUFFER} updates: {updates['version'].max():.0f} of {len(updates)} updates. "
        f"Only {len(slow)} update is from the slow phone, and it is {slow['staleness'].max()} versions old."
    )


def drawn(updates: pd.DataFrame) -> str:
    """Return the picture as SVG."""
    shades = colormaps["viridis_r"]
    bottom = TOP + LANE * len(DURATIONS)
    bars, versions = [], []
    for job in updates.itertuples():
        colour = to_hex(shades(min(1.0, job.staleness / 106)))
        x, width = across(job.dispatched_at), across(job.arrived_at) - across(job.dispatched_at)
        bars.append(
            f'<rect x="{x:.1f}" y="{TOP + LANE * job.client + 3:.0f}" width="{max(width - 1.2, 0.5):.1f}" height="15" '
            f'rx="2" fill="{colour}"/>'
        )
    made = updates.dropna(subset="version").groupby("version")["arrived_at"].max()
    for version, minute in made.items():
        tall = 14 if version and version % 20 == 0 else 7
        versions.append(f"M{across(minute):.1f} {bottom + 8}v{tall}")
    labels = [
        _text(f"version {version:.0f}", across(minute), bottom + 36, 'text-anchor="middle" fill="#c2410c"')
        for version, minute in made.items()
        if version and version % 20 == 0
    ]
    slow = updates[updates["client"] == len(DURATIONS) - 1].iloc[0]
    said = f"its only update is {slow.staleness} versions old when it arrives"
    late = _text(said, across(HOUR) - 14, TOP + LANE * 9 + 15, 'text-anchor="end" fill="#ffffff" font-weight="bold"')
    alt, height, heavy = alternative(updates), bottom + 56, 'font-weight="bold"'
    names = [f"phone {number}" for number in range(1, len(DURATIONS))] + ["slow phone"]
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 {height:.0f}" width="880" height="{height:.0f}"
 role="img" aria-label="{alt}" font-family="Helvetica, Arial, sans-serif" font-size="13" fill="{INK}">
<title>Nobody waits</title>
<desc>{alt}</desc>
<style>
@media (prefers-reduced-motion: no-preference) {{
.cover {{ animation: time {SECONDS}s linear infinite; transform-origin: {RIGHT}px 0 }}
.now {{ animation: now {SECONDS}s linear infinite }}
.late {{ animation: late {SECONDS}s linear infinite }}
}}
@keyframes time {{ 0% {{ transform: scaleX(1) }} {MOVING}%, 100% {{ transform: scaleX(0) }} }}
@keyframes now {{ 0% {{ transform: translateX({LEFT - RIGHT}px) }} {MOVING}%, 100% {{ transform: translateX(0) }} }}
@keyframes late {{ 0%, {MOVING - 2}% {{ opacity: 0 }} {MOVING}%, 100% {{ opacity: 1 }} }}
</style>
<rect width="880" height="{height:.0f}" fill="#ffffff"/>
{_text("Nobody waits: an hour of ten phones", 16, 26, 'font-size="17" ' + heavy)}
{_text(f"each bar is a job; every {BUFFER} updates make a version", 16, 46, f'fill="{NEUTRAL}"')}
{"".join(_text(name, 16, TOP + LANE * lane + 15) for lane, name in enumerate(names))}
{"".join(bars)}
<path d="{"".join(versions)}" stroke="{ACCENT}" stroke-width="1.6"/>
{"".join(labels)}
<rect class="cover" x="{LEFT - 1}" y="{TOP}" width="{RIGHT - LEFT + 12}" height="{bottom - TOP + 44:.0f}"
 fill="#ffffff" style="transform: scaleX(0)"/>
<path class="now" d="M{RIGHT} {TOP - 4}V{bottom + 22:.0f}" stroke="{INK}" stroke-width="1.5"/>
<g class="late">{late}</g>
</svg>
"""


if __name__ == "__main__":
    PICTURE.write_text(drawn(hour()), encoding="utf-8")

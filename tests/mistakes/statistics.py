"""Mistakes in lesson 15."""

ALARMS = """
def false_alarms(n, trials):
    draws = np.random.default_rng(0).standard_normal((2, trials, n))
    gap = draws[0].mean(1) - draws[1].mean(1)
    return ({said}).mean()
"""
SPREAD = "np.sqrt((draws[0].var(1, ddof={ddof}) + draws[1].var(1, ddof={ddof})) / 2)"
ENDS = """
def interval(d, level):
    half = {quantile} * d.std(ddof={ddof}) / {root}
    return d.mean() - half, d.mean() + half
"""
FIRST = """
def seeds_needed(points, deviation):
    return next(n for n in range({start}, 500) if power({shift}, n) {above} 0.8)
"""
VERDICT = """
def verdict(low, high, equal, margin):
{lines}
    return "open"
"""
HOLM = """
def holm(p):
    order = np.argsort(p)
    adjusted = {adjusted}
    return np.minimum(1, adjusted){back}
"""
STEPS = "p[order] * np.arange(len(p), 0, -1)"

MISTAKES = {
    "15.1": [
        ALARMS.format(said=f"gap > {SPREAD.format(ddof=1)}"),  # in one direction only
        ALARMS.format(said=f"abs(gap) > {SPREAD.format(ddof=0)}"),
        ALARMS.format(said=f"abs(gap) > {SPREAD.format(ddof=1)} / n**0.5"),  # of the mean, not of a run
        ALARMS.format(said=f"100.0 * (abs(gap) > {SPREAD.format(ddof=1)})"),
    ],
    "15.2": [
        ENDS.format(quantile="stats.norm.ppf((1 + level) / 2)", ddof=1, root="len(d) ** 0.5"),
        ENDS.format(quantile="stats.t.ppf(level, len(d) - 1)", ddof=1, root="len(d) ** 0.5"),  # one-sided
        ENDS.format(quantile="stats.t.ppf((1 + level) / 2, len(d) - 1)", ddof=0, root="len(d) ** 0.5"),
        ENDS.format(quantile="stats.t.ppf((1 + level) / 2, len(d) - 1)", ddof=1, root="1"),
    ],
    "15.3": [
        FIRST.format(start=2, shift="points", above=">="),
        FIRST.format(start=2, shift="points / deviation", above="> 0.1 +"),
        FIRST.format(start=10, shift="points / deviation", above=">="),
    ],
    "15.4": [
        VERDICT.format(lines='    if low > margin:\n        return "holds"\n    if low <= 0 <= high:\n'
                             '        return "equivalent"\n    if high < 0:\n        return "reversed"'),
        VERDICT.format(lines='    if equal:\n        return "equivalent"\n    if low > 0:\n        return "holds"\n'
                             '    if high < 0:\n        return "reversed"\n    if high < margin:\n'
                             '        return "fails"'),
        VERDICT.format(lines='    if low > margin:\n        return "holds"\n    if high < 0:\n        return "reversed"\n'
                             '    if equal and low <= 0:\n        return "equivalent"\n    if high < margin:\n'
                             '        return "fails"'),  # the interval first
        VERDICT.format(lines='    if equal:\n        return "equivalent"\n    if low > margin:\n        return "holds"\n'
                             '    if high < 0:\n        return "reversed"\n    if 0 < low and high < margin:\n'
                             '        return "fails"'),
    ],
    "15.5": [
        HOLM.format(adjusted="p[order] * len(p)", back="[np.argsort(order)]"),  # Bonferroni
        HOLM.format(adjusted=STEPS, back="[np.argsort(order)]"),  # may fall below the one before
        HOLM.format(adjusted=f"np.maximum.accumulate({STEPS})", back=""),  # sorted
    ],
}  # fmt: skip

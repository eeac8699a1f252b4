"""Mistakes in lesson 18."""

DIGEST = "def digest(plan):\n    return hashlib.sha256({text}.encode()).hexdigest()"
ACTED = "def acted(treated, control):\n    return bool({value})"
PLAN = """
{name} = Plan(
    case="{case}",
    asks=Question(first={first!r}, predicate={predicate!r}, second={second!r}, margin={margin}),
    runs=Runs(metric="{metric}", column="{column}", seeds={seeds}, level={level}),
    control=Control(cell="{cell}", changes={changes!r}, shows={shows!r}),
)
"""
GOOD = {
    "lead": {"name": "lead", "case": "lead", "first": "fedecho-natural", "predicate": "above", "second": "fedbuff", "margin": 12.5,
             "metric": "last5_accuracy", "column": "tuned", "seeds": 10, "level": 0.95, "cell": "fedecho-synthetic",
             "changes": ["settings.distill_set"], "shows": ["other_weights", "same_schedule"]},
    "deaf": {"name": "deaf_plan", "case": "deaf", "first": "fedecho", "predicate": "level", "second": "deaf", "margin": 1,
             "metric": "last5_accuracy", "column": "tuned", "seeds": 10, "level": 0.95, "cell": "deaf",
             "changes": ["hears"], "shows": ["other_weights", "same_schedule"]},
    "weight": {"name": "weight", "case": "weight", "first": "dynamic", "predicate": "above", "second": "fixed-0.5", "margin": 0,
               "metric": "last5_accuracy", "column": "rate 1", "seeds": 48, "level": 0.95, "cell": "fixed-0.5",
               "changes": ["settings.alpha_min", "settings.alpha_max"], "shows": ["other_weights", "same_schedule"]},
    "targets": {"name": "targets", "case": "targets", "first": "dynamic", "predicate": "above", "second": "ce-only", "margin": 1,
                "metric": "last5_accuracy", "column": "tuned", "seeds": 10, "level": 0.95, "cell": "ce-only",
                "changes": ["settings.alpha_min", "settings.alpha_max"], "shows": ["other_weights", "same_schedule"]},
}  # fmt: skip
"""Plans with full marks, of which a mistake changes a thing."""


def plan(case: str, **changed: object) -> str:
    return PLAN.format(**GOOD[case] | changed)


MISTAKES = {
    "18.1": [
        DIGEST.format(text="json.dumps(plan)"),  # the order of keys counts
        DIGEST.format(text="str(sorted(plan.items()))"),  # inside it does
        DIGEST.format(text="json.dumps(sorted(plan))"),  # keys alone
        "def digest(plan):\n    return hash(json.dumps(plan, sort_keys=True))",  # another one in another process
    ],
    "18.2": [
        plan("lead", column="rate 1"),
        plan("lead", metric="best_accuracy"),
        plan("lead", margin=0),
        plan("lead", margin=25),
        plan("lead", cell="fedbuff", changes=["algorithm"]),
        plan("lead", cell="noise"),  # tuned, it has other rates
        plan("lead", shows=[]),
        plan("lead", second="ca2fl"),
        plan("lead", level=0.5),
        plan("lead", second="fedbuf"),  # there is no such cell
        "lead = 12.5",
    ],
    "18.3": [
        ACTED.format(value="(treated['weights_sha256'] != control['weights_sha256'].reindex(treated.index)).all()"),
        ACTED.format(value="(treated['weights_sha256'].to_numpy() != control['weights_sha256'].to_numpy()).any()"),
        ACTED.format(value="treated['weights_sha256'].tolist() != control['weights_sha256'].tolist()"),
    ],
    "18.4": [
        plan("deaf", shows=["it_ran", "same_schedule"]),
        plan("deaf", shows=["lower_accuracy"]),
        plan("deaf", predicate="above", margin=0),
        plan("deaf", margin=3),
        plan("deaf", changes=["logits"]),
        plan("lead", name="deaf_plan"),  # another case's
    ],
    "18.5": [
        plan("weight", seeds=3),
        plan("weight", seeds=10),
        plan("weight", column="tuned"),  # needs three times as many
        plan("weight", metric="final_accuracy"),
        plan("weight", margin=0.4),
        plan("weight", changes=["settings.alpha_max"]),
    ],
}

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


LOSES = [
    ("lead", {"second": "fedac"}, {"question", "budget"}),  # Adam's rates are other ones, as many
    ("lead", {"predicate": "level", "margin": 1}, {"question", "power"}),
    ("lead", {"metric": "best_accuracy"}, {"number"}),
    ("lead", {"margin": 25}, {"power"}),
    ("lead", {"margin": 0}, {"margin"}),
    ("lead", {"margin": 0.125}, {"margin"}),  # a fraction, not points
    ("lead", {"level": 0.9}, {"level"}),
    ("lead", {"column": "rate 1"}, {"budget"}),
    ("lead", {"cell": "fedbuff", "changes": "algorithm"}, {"control"}),
    ("lead", {"cell": "noise"}, {"control"}),
    ("lead", {"cell": "no-distillation", "changes": "settings.distill_q"}, {"control"}),
    ("lead", {"cell": "fedecho-natural", "changes": ()}, {"control"}),
    ("lead", {"shows": ()}, {"proof"}),
    ("lead", {"shows": ("it_ran", "same_schedule")}, {"proof"}),
    ("deaf", {"shows": "it_ran"}, {"proof"}),
    ("deaf", {"shows": "other_weights"}, {"proof"}),
    ("deaf", {"shows": ("other_accuracy", "same_schedule")}, {"proof"}),
    ("deaf", {"shows": ("other_weights", "lower_accuracy", "same_schedule")}, {"proof"}),
    ("deaf", {"predicate": "above", "margin": 0}, {"question", "power", "margin"}),
    ("deaf", {"margin": 2.5}, {"margin"}),
    ("deaf", {"metric": "best_accuracy"}, {"number"}),
    ("deaf", {"changes": "settings.distill_set"}, {"control"}),
    ("deaf", {"level": 0.5}, {"level"}),
    ("weight", {"seeds": 3}, {"power"}),
    ("weight", {"seeds": 10}, {"power"}),
    ("weight", {"metric": "final_accuracy"}, {"power"}),
    ("weight", {"column": "tuned"}, {"power"}),
    ("weight", {"margin": 0.4}, {"power"}),
    ("weight", {"level": 0.5}, {"level", "margin"}),
    ("weight", {"second": "ce-only"}, {"question", "power"}),
    ("weight", {"changes": ("settings.alpha_min",)}, {"control"}),
    ("weight", {"shows": "lower_accuracy"}, {"proof"}),
]
"""Weak plans: a case, what is changed, and the lines of the rubric that it loses; each is a mistake of its exercise."""


def weak(case: str) -> list[str]:
    return [plan(case, **changed) for of, changed, _ in LOSES if of == case]


MISTAKES = {
    "18.1": [
        DIGEST.format(text="json.dumps(plan)"),  # the order of keys counts
        DIGEST.format(text="str(sorted(plan.items()))"),  # inside it does
        DIGEST.format(text="json.dumps(sorted(plan))"),  # keys alone
        "def digest(plan):\n    return hash(json.dumps(plan, sort_keys=True))",  # another one in another process
    ],
    "18.2": [
        *weak("lead"),
        plan("lead", second="ca2fl"),
        plan("lead", second="fedbuf"),  # there is no such cell
        "lead = 12.5",
    ],
    "18.3": [
        ACTED.format(value="(treated['weights_sha256'] != control['weights_sha256'].reindex(treated.index)).all()"),
        ACTED.format(value="(treated['weights_sha256'].to_numpy() != control['weights_sha256'].to_numpy()).any()"),
        ACTED.format(value="treated['weights_sha256'].tolist() != control['weights_sha256'].tolist()"),
    ],
    "18.4": [*weak("deaf"), plan("deaf", changes=["logits"]), plan("lead", name="deaf_plan")],  # another case's
    "18.5": weak("weight"),
}

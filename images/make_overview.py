"""Draw images/overview.png, the README's picture: who trains when, and what that buys."""

from pathlib import Path

import matplotlib.pyplot as plt

from asyncfl_lite import Config, plots, run

SETTING = {"task": "digits", "delay": "fedecho_large", "alpha": 0.1, "eval_every": 5}
HORIZON = 104.0  # units of 10 s: 200 versions of FedBuff


def curves(algorithm: str, **settings) -> list:
    """Return the curves of three seeds."""
    configs = [Config(algorithm=algorithm, seed=seed, **{**SETTING, **settings}) for seed in range(3)]
    return [run(config).curve for config in configs]


def main() -> None:
    """Draw and save it."""
    plots.use_style()
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained", width_ratios=(1.15, 1))
    shown = run(Config(algorithm="fedbuff", horizon=HORIZON, **SETTING))
    plots.plot_gantt(shown.updates, in_flight=shown.in_flight, until=HORIZON, unit="10 s", axes=left)
    left.set_title("FedBuff: who trains when (hatched: not back yet)")
    found = {
        "fedavg": curves("fedavg", horizon=HORIZON, eval_every=1),
        "fedasync": curves("fedasync", horizon=HORIZON, eval_every=25),
        "fedbuff": curves("fedbuff", horizon=HORIZON),
        "fedecho": curves("fedecho", horizon=HORIZON, settings={"distill_set": "natural"}),
    }
    plots.plot_curves(found, unit="10 s", axes=right)
    right.set_title("Accuracy on digits, α = 0.1, 3 seeds")
    figure.savefig(Path(__file__).with_name("overview.png"))


if __name__ == "__main__":
    main()

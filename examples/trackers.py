"""Runs in the tracker that you use already: MLflow, Weights & Biases (offline), or TensorBoard.

python examples/trackers.py mlflow        # pip install mlflow; then mlflow ui
python examples/trackers.py wandb         # pip install wandb; then wandb sync runs/wandb/wandb/offline-run-…
python examples/trackers.py tensorboard   # pip install tensorboard; then tensorboard --logdir runs
"""

import sys
from contextlib import contextmanager
from pathlib import Path

from asyncfl_lite import Config, run
from asyncfl_lite.runs.config import flat


@contextmanager
def mlflow(config):
    """Yield a function that logs a row of the curve to MLflow, under the configuration's settings."""
    import mlflow

    mlflow.set_tracking_uri("sqlite:///runs/mlflow.db")
    with mlflow.start_run(run_name=f"{config.algorithm}-{config.hash}"):
        mlflow.log_params(flat(config.as_dict()))
        yield lambda run, row: mlflow.log_metrics(dict(row), step=row["version"])


@contextmanager
def wandb(config):
    """Yield a function that logs a row of the curve to Weights & Biases, in a folder and not over the network."""
    import wandb

    settings = flat(config.as_dict())
    with wandb.init(project="asyncfl", name=config.hash, config=settings, mode="offline", dir="runs/wandb") as logged:
        yield lambda run, row: logged.log(dict(row), step=row["version"])


@contextmanager
def tensorboard(config):
    """Yield a function that writes a row of the curve for TensorBoard."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(f"runs/{config.algorithm}-{config.hash}") as writer:

        def log(run, row):
            for name, value in row.items():
                writer.add_scalar(name, value, row["version"])

        yield log


if __name__ == "__main__":
    trackers = {"mlflow": mlflow, "wandb": wandb, "tensorboard": tensorboard}
    if len(sys.argv) != 2 or sys.argv[1] not in trackers:
        sys.exit(f"usage: python trackers.py {'|'.join(trackers)}")
    tracker = trackers[sys.argv[1]]
    config = Config(task="digits", algorithm="fedbuff", rounds=20, eval_every=5)
    Path("runs/wandb").mkdir(parents=True, exist_ok=True)
    with tracker(config) as log:
        print(run(config, on_evaluate=log))

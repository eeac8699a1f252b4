"""Any strategy of Flower as a server on the clock: it aggregates a full buffer as it would aggregate a round.

It needs `pip install flwr`. Change `strategy` to the one that you want; this is FedAdam. Flower expects trained models,
so an update stands for the current model plus the client's delta, as FedBuff adds up deltas from different versions.

    python examples/flower_strategy.py
    asyncfl-lite league examples/flower_strategy.py --quick
"""

import numpy as np
import torch
from flwr.common import Code, FitRes, Parameters, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server.client_manager import SimpleClientManager
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import FedAdam, Strategy

from asyncfl_lite import Config, Update, run
from asyncfl_lite.algorithms import ALGORITHMS, About, FedBuff


class Client(ClientProxy):
    """A client's name in Flower's eyes; the clock trains it, so that nothing is asked of it."""

    get_properties = get_parameters = fit = evaluate = reconnect = None


class Chosen(SimpleClientManager):
    """The clients whose updates are in the buffer, which the clock has chosen."""

    def sample(self, num_clients, min_num_clients=None, criterion=None):
        """Return all of them."""
        return list(self.all().values())


@ALGORITHMS.register("flower")
class Flower(FedBuff):
    """A strategy of Flower that acts on each buffer."""

    about = About("Flower's FedAdam", paper="an example", models_stored="M + 4")
    GRID = {"client_lr": [0.1], "server_lr": [0.01, 0.03, 0.1]}
    state_names = (*FedBuff.state_names, "reports", "learned")

    def strategy(self, initial: Parameters) -> Strategy:
        """Return Flower's strategy, with our server learning rate as its η."""
        return FedAdam(initial_parameters=initial, eta=self.server_lr, tau=1e-3)

    def start(self, x0, context=None, **options):
        """Begin with an empty buffer and a new strategy."""
        super().start(x0, context, **options)
        self.reports, self.acting = [], self.strategy(_to_flower(self.x))

    def accumulate(self, update: Update) -> None:
        """Keep the update, too; FedBuff sums up running statistics."""
        super().accumulate(update)
        self.reports.append((update.client, update.num_samples, update.delta))

    def step(self, mean: torch.Tensor) -> torch.Tensor:
        """Return the model that the strategy makes of the buffered updates."""
        clients, ok, results = Chosen(), Status(Code.OK, ""), []
        for client, num_samples, delta in self.reports:
            proxy = Client(str(client))
            clients.register(proxy)
            results.append((proxy, FitRes(ok, _to_flower(self.x + delta), num_samples, {})))
        self.reports = []
        self.acting.configure_fit(self.version + 1, _to_flower(self.x), clients)  # some note the model here
        made, _ = self.acting.aggregate_fit(self.version + 1, results, [])
        return self.x if made is None else torch.from_numpy(parameters_to_ndarrays(made)[0]).to(self.x)

    @property
    def learned(self) -> dict[str, list[torch.Tensor]]:
        """The arrays that the strategy keeps, such as Adam's averages, for checkpoints."""
        lists = {name: value for name, value in vars(self.acting).items() if isinstance(value, list)}
        return {name: [torch.from_numpy(part) for part in value] for name, value in lists.items()}

    @learned.setter
    def learned(self, kept: dict[str, list[torch.Tensor]]) -> None:
        for name, value in kept.items():
            setattr(self.acting, name, [part.numpy() for part in value])


def _to_flower(x: torch.Tensor) -> Parameters:
    return ndarrays_to_parameters([np.array(x)])


if __name__ == "__main__":
    for method, rate in (("flower", 0.03), ("fedbuff", 1.0)):
        print(run(Config(task="digits", algorithm=method, server_lr=rate, client_lr=0.1, rounds=100)))

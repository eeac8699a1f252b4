"""A method of one's own, as the league takes it: FedBuff whose server waits for an update only so long."""

from asyncfl_lite.algorithms import ALGORITHMS, About, FedBuff, Update


@ALGORITHMS.register("fedpatience")
class FedPatience(FedBuff):
    """FedBuff that gives an update weight 0 if it is staler than the server's patience."""

    about = About("FedPatience", paper="an example", models_stored="2")
    GRID = {"client_lr": [0.1], "server_lr": [0.3, 1.0], "patience": [3]}

    class Settings(FedBuff.Settings):
        """Options of FedPatience."""

        patience: int = 3
        """The largest staleness of an update that is used."""

    def weights(self, update: Update) -> tuple[float, float]:
        """Return weight 0 for an update that is too stale; it still counts as one of the buffer's M."""
        weight, counted = super().weights(update)
        in_time = update.staleness <= self.settings.patience
        return weight * in_time, counted

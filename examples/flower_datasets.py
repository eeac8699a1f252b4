"""Clients with the parts that a partitioner of Flower Datasets deals out. It needs `pip install flwr-datasets`.

The data here need no download. For a data set of the hub, take the parts from its FederatedDataset instead:
`FederatedDataset(dataset="ylecun/mnist", partitioners={"train": partitioner}).load_partition(client)`.
"""

from datasets import Dataset
from flwr_datasets.partitioner import PathologicalPartitioner
from sklearn.datasets import load_digits

from asyncfl_lite import Config, Task, run

CLIENTS = 20
digits = load_digits()
images = (digits.images[:, None] / 16).astype("float32")
halves = Dataset.from_dict({"image": images, "label": digits.target}).train_test_split(test_size=0.2, seed=0)

partitioner = PathologicalPartitioner(num_partitions=CLIENTS, partition_by="label", num_classes_per_partition=2)
partitioner.dataset = halves["train"]
parts = [partitioner.load_partition(client) for client in range(CLIENTS)]

*clients, test = [part.with_format("numpy")[:] for part in [*parts, halves["test"]]]
pairs = [(client["image"], client["label"]) for client in clients]
task = Task.from_clients(pairs, (test["image"], test["label"]), name="digits of two classes")
result = run(Config(partition="given", clients=CLIENTS, concurrency=10, rounds=30, client_lr=0.1), task=task)
print(result.clients.head(), result, sep="\n")

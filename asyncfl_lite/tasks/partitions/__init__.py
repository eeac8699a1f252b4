"""Partitions by name: how samples are dealt out to clients; importing this package registers them all."""

from asyncfl_lite.tasks.partitions import bias, dirichlet, part, simple  # noqa: F401 - they register
from asyncfl_lite.tasks.partitions.base import PARTITIONS, Partition, by_client, label_counts, sizes_of, total_variation

__all__ = ["PARTITIONS", "Partition", "by_client", "label_counts", "sizes_of", "total_variation"]

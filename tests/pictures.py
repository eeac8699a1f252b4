"""The words of a notebook's saved pictures, for whoever does not see them."""

from __future__ import annotations

from collections.abc import Iterator

from nbformat import NotebookNode


def words(book: NotebookNode) -> Iterator[str]:
    """Yield what is said of each figure and drawing: the cell's metadata, the output's, or a drawing's own text."""
    for cell in book.cells:
        for output in cell.get("outputs", []):
            data, metadata = output.get("data", {}), output.get("metadata", {})
            if "image/png" in data or "image/svg+xml" in data:
                yield cell.metadata.get("alt") or metadata.get("image/png", {}).get("alt") or data["text/plain"]

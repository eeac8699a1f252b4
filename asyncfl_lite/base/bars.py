"""Progress bars by tqdm: a widget in notebooks that can show one, otherwise a line of text."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # in a notebook without ipywidgets, importing tqdm.auto warns
    from tqdm.auto import tqdm

__all__ = ["tqdm"]

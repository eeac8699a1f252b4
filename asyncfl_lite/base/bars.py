"""Progress bars by tqdm: a widget in notebooks that can show one, otherwise a line of text."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # without ipywidgets, tqdm would warn each time that it prints a line of text
    from tqdm.auto import tqdm

__all__ = ["tqdm"]

"""Progress bars by tqdm: a widget in notebooks that can show one, otherwise a line of text."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # without ipywidgets it is a line of text, of which tqdm would warn each time
    from tqdm.auto import tqdm

__all__ = ["tqdm"]

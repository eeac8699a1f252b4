"""Names of the two recorded columns, in which methods run at a paper's learning rates or at searched ones.

In the column *tuned*, every method's rates were searched. A cell's twin, ``X@printed``, has fixed server settings, and
its clients' rate was searched. The fixed settings depend on the paper. FedRevive's Table 4 has a server rate for every
method. FedEcho's Tables 8 to 10 print the server rate 1 for FedBuff, CA²FL and FedEcho; those of FedAC and FADAS are
smaller rates for Adam, which we scale by the number of steps. KUIPER and FedADT print no server rate for FedBuff, so 1
is our choice. The cell ``X@all-printed`` uses every rate that the paper prints, and exists if these are all of the
method's rates.
"""

from __future__ import annotations

TUNED = "tuned"
RATE_1 = "rate 1"
"""Server rate 1, with the clients' rate searched: FedEcho, KUIPER, FedADT and the real data of FedEcho's cells."""
PRINTED_RATE = "printed server rate"
"""The server rate of FedRevive's Table 4, with the clients' rate searched."""
FIXED = "fixed server rate"
"""Either of the two, where several papers' cells, or the league's, stand side by side."""

_OF_PAPERS = {"fedecho": RATE_1, "kuiper": RATE_1, "fedadt": RATE_1, "real": RATE_1, "fedrevive": PRINTED_RATE}


def untuned(paper: str) -> str:
    """Return the name of the column in which a paper's methods run without tuning the server.

    Args:
        paper: a paper's name or the first part of its cells' names; for anything else the result is :data:`FIXED`.

    Example:
        >>> untuned("KUIPER"), untuned("fedrevive"), untuned("league")
        ('rate 1', 'printed server rate', 'fixed server rate')
    """
    return _OF_PAPERS.get(paper.lower(), FIXED)

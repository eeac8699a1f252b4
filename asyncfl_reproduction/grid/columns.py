"""Names of the recorded columns, in which methods run at searched learning rates or at a fixed server rate.

In the column *tuned*, everything was searched. In ``X@server-rate`` the server's rate is fixed, and all else was
searched. FedRevive's Table 4 has a server rate for every method. FedEcho's Tables 8 to 10 print the server rate 1 for
FedBuff, CA²FL and FedEcho; those of FedAC and FADAS are smaller rates for Adam, which we scale by the number of
steps. KUIPER and FedADT print no server rate for FedBuff, so 1 is our choice. A method without a server rate has no
such cell; its tuned cell stands for it. FedBuff's cell ``@printed`` has this server rate and equal weights for all
updates, as its paper's algorithm. The cell ``X@all-printed`` uses every rate that the paper prints, and exists if
these are all of the method's rates.
"""

from __future__ import annotations

TUNED = "tuned"
RATE_1 = "server rate 1"
"""Server rate 1 and all else searched: FedEcho, KUIPER, FedADT and the real data of FedEcho's cells."""
PRINTED_RATE = "printed server rate"
"""The server rate of FedRevive's Table 4 and all else searched."""
PLAIN = {RATE_1: "plain FedBuff at 1", PRINTED_RATE: "plain FedBuff at the printed rate"}
"""The two above -> the column in which FedBuff's updates are weighted equally as well."""
ALL = "all rates as printed"
FIXED = "fixed server rate"
"""Either of the first two, where several papers' cells stand side by side; in the league, server settings are fixed and
the clients' rate was searched."""

_OF_PAPERS = {"fedecho": RATE_1, "kuiper": RATE_1, "fedadt": RATE_1, "real": RATE_1, "fedrevive": PRINTED_RATE}


def untuned(paper: str) -> str:
    """Return the name of the column in which a paper's methods run without tuning the server's rate.

    Args:
        paper: a paper's name or the first part of its cells' names; for anything else the result is :data:`FIXED`.

    Example:
        >>> untuned("KUIPER"), untuned("fedrevive"), untuned("league")
        ('server rate 1', 'printed server rate', 'fixed server rate')
    """
    return _OF_PAPERS.get(paper.lower(), FIXED)


def column_of(cell: str) -> str:
    """Return the name of a cell's column for readers.

    Example:
        >>> column_of("kuiper/fig3b/bias1/fedbuff@printed"), column_of("league/glyphs/large/fedecho@printed")
        ('plain FedBuff at 1', 'fixed server rate')
    """
    name, _, ending = cell.partition("@")
    fixed = untuned(name.split("/")[0])
    return {"": TUNED, "server-rate": fixed, "printed": PLAIN.get(fixed, FIXED), "all-printed": ALL}[ending]

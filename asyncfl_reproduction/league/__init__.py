"""The league: a comparison of a newcomer's method with all others, on workloads with recorded results."""

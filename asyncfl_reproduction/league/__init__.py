"""The league: a newcomer's method against all others, on workloads where these were run before."""

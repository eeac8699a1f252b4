"""The league: a newcomer's method against all others, in places where these were run before."""

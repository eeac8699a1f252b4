"""Local training of clients: one by one, or many as one computation."""

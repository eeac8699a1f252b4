"""Local training of clients: one by one, or many in one computation."""

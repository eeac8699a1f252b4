"""Tables of invalid input, of one kind each: an id, how it comes about, the words that its message must have."""

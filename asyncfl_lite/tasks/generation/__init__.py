"""Generation tasks: mathematical problems for causal language models."""

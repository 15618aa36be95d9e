"""Where PyTorch keeps the class of the jagged layout."""

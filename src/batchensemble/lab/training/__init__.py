"""One `fit` for every network of the laboratory."""

"""Training: one `fit` for every network in the laboratory."""

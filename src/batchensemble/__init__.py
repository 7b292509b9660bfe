"""Ensembles that cost one network."""

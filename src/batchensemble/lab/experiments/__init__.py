"""Every table and figure of the paper as a value: one small file each, no loops over training, no I/O."""

from batchensemble.lab.experiments.experiment import Experiment, Grid, Row

EXPERIMENTS: dict[str, Experiment] = {}

__all__ = ["EXPERIMENTS", "Experiment", "Grid", "Row"]

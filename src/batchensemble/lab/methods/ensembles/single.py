"""One network: the baseline of every ensemble."""

from dataclasses import dataclass

from batchensemble.lab.methods.ensembles.method import Method


@dataclass(frozen=True)
class Single(Method):
    """One network, one prediction."""

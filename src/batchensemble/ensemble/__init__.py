"""Ensembles: a network whose members share its weights, how it is made, and how rows get in and answers out."""

from batchensemble.ensemble.convert import convert, load
from batchensemble.ensemble.ensemble import Ensemble, check_ensemble, twin_of

__all__ = ["Ensemble", "check_ensemble", "convert", "load", "twin_of"]

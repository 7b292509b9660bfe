"""Every table and figure of the paper as a value: one small file each, without training loops or I/O.

To add one, write a file like `unseen_classes.py` and list it below. The tests run it at the scale `smoke`.
"""

from batchensemble.lab.experiments.accuracy import ACCURACY
from batchensemble.lab.experiments.bandits import BANDITS, FURTHER_PROBLEMS, VARIATIONS
from batchensemble.lab.experiments.calibration import CALIBRATION
from batchensemble.lab.experiments.corruption import CORRUPTION
from batchensemble.lab.experiments.cost import COST_BY_SIZE
from batchensemble.lab.experiments.experiment import Case, Experiment, Grid, Row
from batchensemble.lab.experiments.fine_tuning import FINE_TUNING
from batchensemble.lab.experiments.lifelong_cifar100 import LIFELONG_CIFAR100, LIFELONG_OPTIONS
from batchensemble.lab.experiments.lifelong_cost import LIFELONG_COST
from batchensemble.lab.experiments.lifelong_growth import LIFELONG_GROWTH
from batchensemble.lab.experiments.lifelong_imagenet import LIFELONG_IMAGENET
from batchensemble.lab.experiments.partial_data import DIVERSITY, PARTIAL_DATA
from batchensemble.lab.experiments.prediction_maps import PREDICTION_MAPS
from batchensemble.lab.experiments.recipes import RECIPES
from batchensemble.lab.experiments.small_networks import SMALL_NETWORKS
from batchensemble.lab.experiments.tables import TABLES, TABLES_REGULARISED
from batchensemble.lab.experiments.translation_ende import TRANSLATION_ENDE
from batchensemble.lab.experiments.translation_enfr import TRANSLATION_ENFR
from batchensemble.lab.experiments.unseen_classes import UNSEEN_CLASSES

_ALL = (
    ACCURACY,
    CALIBRATION,
    SMALL_NETWORKS,
    PARTIAL_DATA,
    DIVERSITY,
    CORRUPTION,
    UNSEEN_CLASSES,
    PREDICTION_MAPS,
    COST_BY_SIZE,
    BANDITS,
    RECIPES,
    FINE_TUNING,
    TABLES,
    TABLES_REGULARISED,
    VARIATIONS,
    FURTHER_PROBLEMS,
    LIFELONG_CIFAR100,
    LIFELONG_OPTIONS,
    LIFELONG_COST,
    LIFELONG_IMAGENET,
    LIFELONG_GROWTH,
    TRANSLATION_ENDE,
    TRANSLATION_ENFR,
)
EXPERIMENTS: dict[str, Experiment] = {experiment.id: experiment for experiment in _ALL}
"""Experiments by id, in the order in which they are listed and run."""

__all__ = ["EXPERIMENTS", "Case", "Experiment", "Grid", "Row"]

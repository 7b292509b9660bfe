"""Image classification: a recipe is trained once, and measured on clean, corrupted and unseen images."""

from batchensemble.lab.studies.classification.recipe import Recipe
from batchensemble.lab.studies.classification.study import CLASSIFICATION, Settings

__all__ = ["CLASSIFICATION", "Recipe", "Settings"]

"""Machine translation: a Transformer whose attention layers have members."""

from batchensemble.lab.studies.translation.recipe import Members, Recipe
from batchensemble.lab.studies.translation.study import TRANSLATION, Settings
from batchensemble.lab.studies.translation.translator import Translator

__all__ = ["TRANSLATION", "Members", "Recipe", "Settings", "Translator"]

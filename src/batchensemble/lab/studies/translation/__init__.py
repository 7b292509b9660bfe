"""Machine translation: a Transformer whose attention layers have members."""

from .recipe import Members, Recipe
from .study import TRANSLATION, Settings
from .translator import Translator

__all__ = ["TRANSLATION", "Members", "Recipe", "Settings", "Translator"]

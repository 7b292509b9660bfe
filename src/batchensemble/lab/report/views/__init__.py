"""Named views: each builds a function from an experiment's evidence to one table, figure or checked claim."""

from batchensemble.lab.report.views.bars import bars
from batchensemble.lab.report.views.claims import higher, lower, no_better, no_worse, on_a_par, ratio
from batchensemble.lab.report.views.comparison import comparison
from batchensemble.lab.report.views.cost import cost_by_size
from batchensemble.lab.report.views.curves import over_steps, training_curves
from batchensemble.lab.report.views.diversity import diversity_against_accuracy
from batchensemble.lab.report.views.entropy import entropy_histograms
from batchensemble.lab.report.views.heatmaps import heatmaps
from batchensemble.lab.report.views.maps import prediction_maps
from batchensemble.lab.report.views.over_label import over_label
from batchensemble.lab.report.views.recipes import recipes
from batchensemble.lab.report.views.regret_claims import best_mean_value, lower_mean_value
from batchensemble.lab.report.views.regret_tables import paired_table, regret_table, rewards_table
from batchensemble.lab.report.views.relative import relative_to
from batchensemble.lab.report.views.reliability import reliability_diagrams
from batchensemble.lab.report.views.severity import by_severity
from batchensemble.lab.report.views.sooner import sooner
from batchensemble.lab.report.views.view import View

__all__ = [
    "View",
    "bars",
    "best_mean_value",
    "by_severity",
    "comparison",
    "cost_by_size",
    "diversity_against_accuracy",
    "entropy_histograms",
    "heatmaps",
    "higher",
    "lower",
    "lower_mean_value",
    "no_better",
    "no_worse",
    "on_a_par",
    "over_label",
    "over_steps",
    "paired_table",
    "prediction_maps",
    "ratio",
    "recipes",
    "regret_table",
    "relative_to",
    "reliability_diagrams",
    "rewards_table",
    "sooner",
    "training_curves",
]

"""Draw the figures of the report that the docs show, from the records in results/: `docs/assets/*.png`.

Without arguments it writes the pictures of the docs; a folder as the only argument writes them elsewhere.
"""

import sys
from pathlib import Path

from drawn.records import evidence_of

from batchensemble.lab.experiments import EXPERIMENTS
from batchensemble.lab.records import Scale
from batchensemble.lab.report import Figure

PICTURES: dict[str, tuple[str, Scale, str, dict[str, str]]] = {
    "recipes": ("recipes", "paper", "recipes", {}),
    "reliability": ("cifar-calibration", "paper", "reliability", {"data": "CIFAR-10"}),
    "reliability-cifar100": ("cifar-calibration", "paper", "reliability", {"data": "CIFAR-100"}),
    "tables": ("tables", "small", "curves", {}),
    "diversity": ("cifar-diversity", "paper", "base_disagreement_over_error", {"share": "100 %"}),
}
"""Experiment, scale and name of the figure behind each picture, and the rows that it shows."""


def drawn(experiment: str, scale: Scale, figure: str, rows: dict[str, str]) -> bytes:
    """A figure of an experiment."""
    evidence = evidence_of(experiment, scale).where(**rows)
    shown = (view(evidence) for view in EXPERIMENTS[experiment].show)
    return next(one for one in shown if isinstance(one, Figure) and one.name == figure).render().png


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent / "assets"
    for name, figure in PICTURES.items():
        (folder / f"{name}.png").write_bytes(drawn(*figure))

"""Draw the figures of the report that the docs show, from the records in results/: `docs/assets/*.png`.

Without arguments it writes the pictures of the docs; a folder as the only argument writes them elsewhere.
"""

import sys
from pathlib import Path

from drawn.records import evidence_of

from batchensemble.lab.experiments import EXPERIMENTS
from batchensemble.lab.records import Scale
from batchensemble.lab.report import Figure

PICTURES: dict[str, tuple[str, Scale]] = {
    "recipes": ("recipes", "paper"),
    "reliability": ("cifar-calibration", "paper"),
}
"""Experiment and scale of the figure of this name."""


def drawn(name: str, experiment: str, scale: Scale) -> bytes:
    """A figure of an experiment."""
    evidence = evidence_of(experiment, scale)
    shown = (view(evidence) for view in EXPERIMENTS[experiment].show)
    return next(one for one in shown if isinstance(one, Figure) and one.name == name).render().png


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent / "assets"
    for name, (experiment, scale) in PICTURES.items():
        (folder / f"{name}.png").write_bytes(drawn(name, experiment, scale))

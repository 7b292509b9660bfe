"""Draw all recipes that were measured, members' accuracy against disagreement: `docs/assets/recipes.png`.

Without arguments it writes the picture of the docs; a path as the only argument writes it elsewhere.
"""

import sys
from pathlib import Path

from drawn.records import evidence_of

from batchensemble.lab.report import Figure
from batchensemble.lab.report.views import recipes

if __name__ == "__main__":
    target = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent / "assets" / "recipes.png"
    figure = recipes()(evidence_of("recipes", "paper"))
    assert isinstance(figure, Figure)
    target.write_bytes(figure.render().png)

"""Draw one image under all nineteen corruptions at five severities: `docs/assets/corruptions.png`.

Without arguments it writes the picture of the docs, of an image made here; a path as the only argument
writes it elsewhere.
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from batchensemble.lab.data import procedural
from batchensemble.lab.data.corruptions import CORRUPTIONS, SEVERITIES, corrupt

TILE, GAP, LABEL, TOP = 64, 4, 150, 28


def draw_corruptions(image: NDArray[np.uint8], path: Path) -> None:
    """Write a picture of `image (32, 32, 3)`: two halves of ten rows, the clean image in the last row."""
    rows = -(-(len(CORRUPTIONS) + 1) // 2)
    half = LABEL + len(SEVERITIES) * (TILE + GAP)
    canvas = Image.new("RGB", (2 * half + GAP, TOP + rows * (TILE + GAP)), "white")
    pen, font = ImageDraw.Draw(canvas), ImageFont.load_default(15)
    for place, name in enumerate([*CORRUPTIONS, "clean"]):
        left, top = half * (place // rows), TOP + (place % rows) * (TILE + GAP)
        pen.text((left + LABEL - 8, top + TILE // 2), name.replace("_", " "), "black", font, "rm")
        for column, severity in enumerate(SEVERITIES):
            x = left + LABEL + column * (TILE + GAP)
            pen.text((x + TILE // 2, TOP // 2), str(severity), "black", font, "mm")
            if name != "clean" or severity == 1:
                tile = image if name == "clean" else corrupt(image[None], name, severity)[0]
                canvas.paste(Image.fromarray(tile).resize((TILE, TILE), Image.Resampling.NEAREST), (x, top))
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.save(path, optimize=True)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent / "assets" / "corruptions.png"
    pictures = procedural(train=80, test=10)[0].images.permute(0, 2, 3, 1).numpy()
    draw_corruptions(pictures[65], target)

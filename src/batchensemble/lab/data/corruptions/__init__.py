"""Our own CIFAR-10-C: nineteen corruptions at five severities with the published constants, seeded.

It needs only numpy, scipy and Pillow. The published set was not seeded, so it cannot be reproduced bit for bit;
motion blur and snow replace those of ImageMagick, spatter's distances are exact, and frost is drawn instead of
photographed.
"""

from batchensemble.lab.data.corruptions.files import Origin, load_cifar_c, read_origin
from batchensemble.lab.data.corruptions.making import make_cifar_c
from batchensemble.lab.data.corruptions.registry import CORRUPTIONS, SEVERITIES, corrupt

__all__ = [
    "CORRUPTIONS",
    "SEVERITIES",
    "Origin",
    "corrupt",
    "load_cifar_c",
    "make_cifar_c",
    "read_origin",
]

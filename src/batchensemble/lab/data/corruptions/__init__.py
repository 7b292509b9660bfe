"""CIFAR-10-C made here: nineteen corruptions at five severities with the published constants, seeded.

numpy, scipy and Pillow are all it needs. The published set was not seeded, so that no second making equals
it bit for bit; motion blur and snow stand for ImageMagick's, spatter's distances are exact, and frost is
drawn unless the published photographs are given.
"""

from .files import Origin, load_cifar_c, read_origin
from .making import make_cifar_c
from .registry import CORRUPTIONS, EXTRA, SEVERITIES, corrupt

__all__ = [
    "CORRUPTIONS",
    "EXTRA",
    "SEVERITIES",
    "Origin",
    "corrupt",
    "load_cifar_c",
    "make_cifar_c",
    "read_origin",
]

"""Data: archives, bundled and procedural sets, corruptions, augmentation, streams, tables."""

from .augment import crop_flip, draw_crops, normalise
from .cifar import load_cifar10, load_cifar100
from .digits import draw_noise, load_digits
from .image_set import ImageSet
from .location import data_root
from .procedural import procedural
from .streams import Task, split_classes
from .tables import Table, load_table

__all__ = [
    "ImageSet",
    "Table",
    "Task",
    "crop_flip",
    "data_root",
    "draw_crops",
    "draw_noise",
    "load_cifar10",
    "load_cifar100",
    "load_digits",
    "load_table",
    "normalise",
    "procedural",
    "split_classes",
]

"""Data: archives, bundled and procedural sets, corruptions, augmentation, streams."""

from .augment import crop_flip, draw_crops, normalise
from .cifar import load_cifar10, load_cifar100
from .digits import load_digits
from .image_set import ImageSet
from .location import data_root
from .procedural import procedural
from .streams import Task, split_classes

__all__ = [
    "ImageSet",
    "Task",
    "crop_flip",
    "data_root",
    "draw_crops",
    "load_cifar10",
    "load_cifar100",
    "load_digits",
    "normalise",
    "procedural",
    "split_classes",
]

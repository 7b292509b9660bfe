"""Data: archives, bundled and procedural sets, corruptions, augmentation, streams, tables.

To add a data set, write a function that loads it, and name it where its kind is looked up: `DATA` in
`studies/images.py` for images, `FOLDERS` in `studies/task_stream.py` for images in folders, `TABLES` in `tables.py`,
`SOURCES` in `bandits/sources.py`, `CORPORA` in `studies/translation/corpora.py`. Recipes then ask for it by that name.
"""

from batchensemble.lab.data.augment import crop_flip, draw_crops, normalise
from batchensemble.lab.data.cifar import load_cifar10, load_cifar100
from batchensemble.lab.data.digits import draw_noise, load_digits
from batchensemble.lab.data.image_set import ImageSet
from batchensemble.lab.data.location import data_root
from batchensemble.lab.data.procedural import procedural
from batchensemble.lab.data.streams import Task, split_classes
from batchensemble.lab.data.tables import Table, load_table

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

"""Data: archives, bundled and procedural sets, corruptions, augmentation, streams, tables.

To add a data set, write a function that loads it, and name it where its kind is looked up; recipes then ask for it by
that name:

- images: `DATA` in `studies/images.py`; in folders: `FOLDERS` in `studies/lifelong/streams.py`
- tables: `TABLES` in `tables.py`
- bandit problems: `SOURCES` in `bandits/sources.py`
- text: `CORPORA` in `studies/translation/corpora.py`
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

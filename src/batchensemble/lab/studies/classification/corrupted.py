"""The corrupted versions of a test set: the published files if they are there, else made here and kept."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from batchensemble.lab.data import ImageSet, data_root
from batchensemble.lab.data.corruptions import CORRUPTIONS, SEVERITIES, load_cifar_c, make_cifar_c
from batchensemble.lab.studies.study import Context

PUBLISHED = {"cifar10-test": "CIFAR-10-C", "cifar100-test": "CIFAR-100-C"}
MANY = 1000  # images from which it pays to use all cores and show a progress bar


def corrupted_sets(test: ImageSet, names: Iterable[str], context: Context) -> Iterator[tuple[str, int, ImageSet]]:
    """The test set itself as `("none", 0, test)`, then every corruption at severities 1 to 5."""
    wanted = tuple(names) or tuple(CORRUPTIONS)
    folder = _published(test, wanted, context.data) or _made(test, wanted, context)
    yield "none", 0, test
    for name in wanted:
        for severity in SEVERITIES:
            yield name, severity, load_cifar_c(folder, name, severity, classes=test.classes)


def prepare_corrupted(test: ImageSet, root: Path | None) -> Path:
    """The data folder with all corrupted versions of a test set, made if they are missing.

    Raises:
        ValueError: there are no corrupted versions of that set.
    """
    if test.name not in PUBLISHED:
        raise ValueError(f"corrupted versions are made of {', '.join(PUBLISHED)}; got {test.name}")
    folder = data_root(root) / PUBLISHED[test.name]
    return folder if _holds(folder, CORRUPTIONS) else make_cifar_c(test, folder)


def _published(test: ImageSet, names: Iterable[str], root: Path | None) -> Path | None:
    """The data folder with these corruptions of the whole test set, the authors' files or ours, if any."""
    folder = data_root(root) / PUBLISHED.get(test.name, "not published")
    return folder if len(test) == 10_000 and _holds(folder, names) else None


def _holds(folder: Path, names: Iterable[str]) -> bool:
    """Whether all files are there; labels are written first, so they alone prove nothing."""
    return all((folder / f"{name}.npy").exists() for name in ("labels", *names))


def _made(test: ImageSet, names: Iterable[str], context: Context) -> Path:
    folder = context.work / "corrupted" / f"{test.name}-{len(test)}"
    many = len(test) >= MANY
    return make_cifar_c(test, folder, names=names, processes=None if many else 1, progress=many)

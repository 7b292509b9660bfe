"""Makes a corrupted set: on all cores, with a progress bar, resuming where it stopped."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batchensemble.disk import written_whole
from batchensemble.lab.data.corruptions.files import Origin, read_origin, write_origin
from batchensemble.lab.data.corruptions.registry import CORRUPTIONS, SEVERITIES, check_name, corrupt
from batchensemble.lab.data.image_set import ImageSet

CHUNK = 250
Bytes = NDArray[np.uint8]


def make_cifar_c(
    clean: ImageSet,
    out_dir: str | Path,
    *,
    names: Iterable[str] = tuple(CORRUPTIONS),
    seed: int = 0,
    processes: int | None = None,
    progress: bool = True,
) -> Path:
    """Write the corrupted versions of `clean`, on all cores; files that are already there are kept.

    Each file is written under another name and renamed when complete, so that after a kill, work resumes where it was.
    Other processes are spawned: a script must call this under `if __name__ == "__main__":`.

    Args:
        clean: images `(N, 3, 32, 32)`.
        out_dir: folder of the set.
        names: names of the corruptions.
        seed: determines all random numbers; any number of processes writes the same bytes.
        processes: number of processes; `None` for one per core, 1 for this one only.
        progress: whether to show a progress bar.

    Returns:
        The folder.

    Raises:
        ValueError: a name is unknown, or the folder holds another set.
        OSError: for example, the disk is full; no incomplete file is left.
    """
    folder, wanted = Path(out_dir), list(names)
    for name in wanted:
        check_name(name)
    images = clean.images.cpu().permute(0, 2, 3, 1).contiguous().numpy()
    _claim(folder, clean, _origin(clean, seed))
    todo = [name for name in wanted if not (folder / f"{name}.npy").exists()]
    work = partial(_corrupt_piece, seed=seed)
    with _pool(processes if todo else 1) as run, _bar(len(todo) * len(images), progress) as advance:
        for name in todo:
            with written_whole(folder / f"{name}.npy") as beside, beside.open("wb") as file:
                shape = (len(SEVERITIES) * len(images), *images.shape[1:])
                np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
                for piece in run(work, _jobs(images, name)):
                    file.write(piece.tobytes())
                    advance(name, len(piece))
    return folder


Job = tuple[Bytes, str, int, int]
"""A piece of the images, the corruption, its severity, and the index of the piece's first image."""


def _jobs(images: Bytes, name: str) -> Iterator[Job]:
    for severity in SEVERITIES:
        for first in range(0, len(images), CHUNK):
            yield images[first : first + CHUNK], name, severity, first


def _corrupt_piece(job: Job, seed: int) -> Bytes:
    images, name, severity, first = job
    return corrupt(images, name, severity, seed=seed, first=first)


def _origin(clean: ImageSet, seed: int) -> Origin:
    checksum = hashlib.sha256()
    for part in (clean.images, clean.labels):
        checksum.update(part.cpu().contiguous().numpy().tobytes())
    return Origin(clean.name, checksum.hexdigest()[:16], seed, frost="drawn, not the original frost")


def _claim(folder: Path, clean: ImageSet, origin: Origin) -> None:
    """Create the folder with its labels and origin, or check that it is the one these arguments would create."""
    folder.mkdir(parents=True, exist_ok=True)
    found = read_origin(folder)
    if found is None:
        if any(folder.glob("*.npy")):
            raise ValueError(f"{folder} holds a set without origin.json (the published one?): choose another folder")
        with written_whole(folder / "labels.npy") as beside, beside.open("wb") as file:
            np.save(file, np.tile(clean.labels.cpu().numpy().astype(np.uint8), len(SEVERITIES)))
        write_origin(folder, origin)
    elif found != origin:
        raise ValueError(f"{folder} holds another set: {found}, asked for {origin}")


@contextmanager
def _pool(processes: int | None) -> Iterator[Callable[[Callable[[Job], Bytes], Iterable[Job]], Iterable[Bytes]]]:
    """Yield `map`, in this process or over several; results come in the order of the jobs."""
    if processes == 1:
        yield map
        return
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _bar(images: int, shown: bool) -> Iterator[Callable[[str, int], None]]:
    """Yield what advances the bar: called with a corruption's name, and how many more of its images are done."""
    from rich.progress import Progress

    with Progress(disable=not shown) as progress:
        task = progress.add_task("", total=images * len(SEVERITIES))
        yield lambda name, count: progress.update(task, description=name, advance=count)

"""A learner's folder: what lies in it, who writes what in which order, and what counts after a kill.

    shared.safetensors         the weights that all tasks share; counts if there is a task
    task-<name>.safetensors    what a task has to itself
    learning.pt                a training while it lasts, replaced after every epoch; the same call goes on there
    .lock                      locked by whoever writes, and during a whole training; never removed
    .new/                      files that count, but are not in their places yet

A writer

1. takes the lock, or is refused if another process has it;
2. moves what a killed one has left in `.new` to its place;
3. is refused unless the tasks in the folder, and the weights that they share, are those that it knows;
4. writes its files into a folder that nobody reads, and renames that to `.new` when all of them are on the disk: a
   process killed before this moment leaves the old tasks, one killed later the new ones;
5. moves the files of `.new` to their places, and deletes the checkpoint of their training, if it has just ended;
6. releases the lock.

`Folder.write` is step 4, and `Folder.held`, around it, all others. Two changes need no `.new`, since each is that of a
single file: an epoch of a training replaces the checkpoint, and `Folder.forget` deletes a task's file.

A reader takes no lock. It waits until there is no `.new` (if its writer was killed, the reader does step 5), reads all
files, and reads them again if one of them has changed meanwhile.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batchensemble import files
from batchensemble.disk import sync_folder, version_of, written_whole
from batchensemble.lifelong import storage
from batchensemble.lifelong.checkpoint import Checkpoint
from batchensemble.lifelong.head import HeadRule
from batchensemble.lifelong.network import Tasks
from batchensemble.locks import Busy, held

AFRESH = "open it with a new learner, or write everything that this one knows, by save()"
LEARNED = "learned"  # among new files: a mark that the training in the folder's checkpoint is what they come from


@dataclass(frozen=True)
class Folder:
    """A learner's folder, read and written as this module says."""

    path: Path

    # ---- what lies in it -----------------------------------------------------------------------------------------

    def task(self, name: str) -> Path:
        """Where a task is kept."""
        return self.path / f"task-{name}.safetensors"

    @property
    def shared(self) -> Path:
        """Where the common weights are kept."""
        return self.path / "shared.safetensors"

    def checkpoint(self, identity: Mapping[str, Any]) -> Checkpoint:
        """Where a training is kept while it lasts; `identity` is what makes it another one."""
        return Checkpoint(self._learning, identity)

    @property
    def _learning(self) -> Path:
        return self.path / "learning.pt"

    @property
    def _new(self) -> Path:
        """Where files are that count, but are not in their places yet."""
        return self.path / ".new"

    def _tasks(self) -> set[str]:
        """Names of the tasks in here."""
        paths = self.path.glob(self.task("*").name)
        return {path.name.removeprefix("task-").removesuffix(".safetensors") for path in paths}

    # ---- reading -------------------------------------------------------------------------------------------------

    def load_(self, tasks: Tasks, rule: HeadRule) -> None:
        """Read everything, in the order in which it was learned. Shared weights without any task do not count.

        Args:
            tasks: where to put it; no task is known there yet.
            rule: how heads are made.

        Raises:
            ValueError: there are tasks, but not the weights that they share.
        """
        stored = self._read()
        shared = stored.pop(self.shared, None)
        if not stored:
            return
        if shared is None:
            raise ValueError(
                f"{self.path} holds {_listed(stored)}, but not {self.shared.name}, the weights that they share: "
                "restore that file, e.g. from where the folder was copied from; no task can answer without it"
            )
        storage.load_shared_(tasks, shared)
        in_order = sorted(stored.values(), key=lambda file: (file.header["number"], file.path.name))
        storage.load_tasks_(tasks, in_order, rule)
        tasks.requires_grad_(False)

    def _read(self) -> dict[Path, storage.Stored]:
        """Read all files as they are at one moment: again, if another process changes some of them meanwhile."""
        while True:
            self._await_new_files()
            before = self._versions()
            try:
                stored = {path: storage.read(path, "shared" if path == self.shared else "task") for path in before}
            except Exception:  # one may be gone
                if self._versions() == before:
                    raise
                continue
            if self._versions() == before and not self._new.exists():
                return stored

    def _versions(self) -> dict[Path, tuple[int, int]]:
        """All files that count, and what is another one once they are replaced; without tasks, none counts."""
        names = self._tasks()
        paths = (self.shared, *map(self.task, names)) if names else ()
        return {path: version for path in paths if (version := version_of(path))}

    def _await_new_files(self) -> None:
        """Wait for a process that is moving files to their places; if it was killed, do that for it."""
        while self._new.exists():
            with suppress(Busy), self._locked():
                self._put_in_place()
            time.sleep(0.01)

    # ---- writing -------------------------------------------------------------------------------------------------

    @contextmanager
    def held(self, tasks: Tasks, to_replace: bool = False) -> Iterator[None]:
        """Reserve the folder for this process alone, until it is released or the process ends.

        Args:
            tasks: all tasks that the learner knows.
            to_replace: everything will be written, so it does not matter if something is missing or another one.

        Raises:
            Busy: another process is learning here.
            ValueError: the folder holds other tasks than the learner knows, or they share other weights.
        """
        with self._locked():
            self._put_in_place()
            self._check_names(set(tasks.names), to_replace)
            if not to_replace:
                self._check_weights(tasks)
            try:
                yield
            finally:  # an error may come after files were written, such as a warning that counts as one
                self._put_in_place()

    def _locked(self) -> AbstractContextManager[None]:
        """The lock is inside the folder, since the one around it may belong to somebody else."""
        advice = "wait for it, or give this learner a folder of its own"
        return held(self.path / ".lock", f"another process is learning in {self.path}: {advice}")

    def _check_names(self, known: set[str], to_replace: bool) -> None:
        there = self._tasks()
        if unknown := there - known:
            raise ValueError(
                f"{self.path} holds tasks that this learner does not know, {_listed(map(self.task, unknown))}: "
                "open it with a new learner, or choose another folder"
            )
        if (gone := known - there) and not to_replace:
            raise ValueError(f"{self.path} no longer holds {_listed(map(self.task, gone))}: {AFRESH}")

    def _check_weights(self, tasks: Tasks) -> None:
        """Refuse a learner whose shared weights are not those of the tasks in here, e.g. since they were cast.

        Its next file would not fit the others, and nobody could open the folder any more.
        """
        if not tasks.names:
            return
        there = storage.read(self.task(tasks.names[0]), "task").header["fingerprints"]
        if there != files.fingerprints(tasks.ensemble.net):
            raise ValueError(
                f"{self.path} holds tasks with other shared weights than this learner has: was it cast to another "
                f"dtype, or the folder replaced? Then {AFRESH}"
            )

    def check_known(self, tasks: Tasks, names: Iterable[str]) -> None:
        """Refuse to write for a learner that knows other tasks by some names: another one has learned them anew.

        Args:
            tasks: the tasks that the learner knows.
            names: names of those, all of which are here, that what will be written depends on.

        Raises:
            ValueError: one of them is another task here.
        """
        for name in names:
            if storage.read(self.task(name), "task").header["number"] != tasks.numbers[tasks.place(name)]:
                raise ValueError(
                    f"{self.path} holds a task '{name}' that was learned since this learner was opened: {AFRESH}"
                )

    def write(self, tasks: Tasks, names: Sequence[str], learned: bool = False) -> None:
        """Write some tasks, and what all share if these are all of them or it is not there: everything or nothing.

        They count from now on.

        Args:
            tasks: all tasks.
            names: names of those to write.
            learned: they were just learned, and their checkpoint is needed no more.
        """
        with written_whole(self._new, of=self.path) as beside:
            beside.mkdir()
            there = Folder(beside)
            if len(names) == len(tasks.names) or not self.shared.exists():
                storage.save_shared(tasks, there.shared)
            shared = files.fingerprints(tasks.ensemble.net)
            for name in names:
                storage.save_task(tasks, tasks.place(name), there.task(name), shared)
            if learned:
                (beside / LEARNED).touch()
        sync_folder(self.path)

    def _put_in_place(self) -> None:
        """Move what was written, here or by a process that was killed, to where it belongs."""
        if self._new.exists():
            for path in sorted(self._new.iterdir()):
                if path.name == LEARNED:
                    self._learning.unlink(missing_ok=True)
                    path.unlink()
                else:
                    path.replace(self.path / path.name)
            self._new.rmdir()

    def forget(self, tasks: Tasks, name: str) -> None:
        """Delete the file of a task that was dropped.

        Every file says how many tasks had been learned when it was written. If only this one knew of the last of them,
        another is written again first: what the next task starts with depends on their number.

        Args:
            tasks: those that stay.
            name: the task that was dropped.
        """
        newest = max(tasks.numbers)
        if newest + 1 < tasks.learned:
            place = tasks.numbers.index(newest)
            self.check_known(tasks, [tasks.names[place]])
            storage.save_task(tasks, place, self.task(tasks.names[place]))
        self.task(name).unlink(missing_ok=True)


def _listed(paths: Iterable[Path]) -> str:
    return ", ".join(sorted(path.name for path in paths))

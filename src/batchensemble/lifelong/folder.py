"""A learner's folder: what lies in it, in which order it is written, and what counts after a kill."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from batchensemble import files
from batchensemble.disk import sync_folder, version_of, written_whole
from batchensemble.lifelong import storage
from batchensemble.lifelong.head import HeadRule
from batchensemble.lifelong.network import Tasks
from batchensemble.locks import Busy, held

AFRESH = "open it with a new learner, or write everything that this one knows, by save()"
LEARNED = "learned"  # among new files: a mark that the training in the folder's checkpoint is what they come from


@dataclass(frozen=True)
class Folder:
    """A learner's folder: `shared.safetensors`, a file per task, and the checkpoint of what is being learned.

    Files that belong together are written into a folder of their own, `.new`, which appears when it is complete. From
    then on they count, and are moved to their places; after a kill, whoever comes next does the rest.
    """

    path: Path

    # ---- what lies in it -----------------------------------------------------------------------------------------

    def task(self, name: str) -> Path:
        """Where a task is kept."""
        return self.path / f"task-{name}.safetensors"

    @property
    def shared(self) -> Path:
        """Where the common weights are kept."""
        return self.path / "shared.safetensors"

    @property
    def unfinished(self) -> Path:
        """Where a training is kept while it lasts."""
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
        found = self._read()
        shared = found.pop(self.shared, None)
        if not found:
            return
        if shared is None:
            raise ValueError(
                f"{self.path} holds {_listed(found)}, but not {self.shared.name}, the weights that they share: "
                "restore that file, e.g. from where the folder was copied from; no task can answer without it"
            )
        storage.load_shared_(tasks, shared)
        in_order = sorted(found.values(), key=lambda file: (file.header["number"], file.path.name))
        storage.load_tasks_(tasks, in_order, rule)
        tasks.requires_grad_(False)

    def _read(self) -> dict[Path, storage.Stored]:
        """Read all files as they are at one moment: again, if another process changes some of them meanwhile."""
        while True:
            self._await_new_files()
            before = self._versions()
            try:
                found = {path: storage.read(path, "shared" if path == self.shared else "task") for path in before}
            except Exception:  # one may be gone
                if self._versions() == before:
                    raise
                continue
            if self._versions() == before and not self._new.exists():
                return found

    def _versions(self) -> dict[Path, tuple[int, int]]:
        """All files that count, and what is another one once they are replaced; without tasks, none counts."""
        names = self._tasks()
        paths = (self.shared, *map(self.task, names)) if names else ()
        return {path: version for path in paths if (version := version_of(path))}

    def _await_new_files(self) -> None:
        """Wait for a process that is moving files to their places; if it was killed, do that for it."""
        while self._new.exists():
            with suppress(Busy), self._locked():
                self.put_in_place()
            time.sleep(0.01)

    # ---- writing -------------------------------------------------------------------------------------------------

    @contextmanager
    def held(self, known: Iterable[str], to_replace: bool = False) -> Iterator[None]:
        """Reserve the folder for this process alone, until it is released or the process ends.

        Args:
            known: names of all tasks that the learner knows.
            to_replace: everything will be written, so it does not matter if something is missing.

        Raises:
            Busy: another process is learning here.
            ValueError: the folder holds other tasks than the learner knows.
        """
        with self._locked():
            self.put_in_place()
            there, expected = self._tasks(), set(known)
            if unknown := there - expected:
                raise ValueError(
                    f"{self.path} holds tasks that this learner does not know, {_listed(map(self.task, unknown))}: "
                    "open it with a new learner, or choose another folder"
                )
            if (gone := expected - there) and not to_replace:
                raise ValueError(f"{self.path} no longer holds {_listed(map(self.task, gone))}: {AFRESH}")
            yield

    def check_weights(self, tasks: Tasks) -> None:
        """Refuse to write for a learner whose shared weights are not those of the tasks in here.

        Its next file would not fit the others, and nobody could open the folder any more.

        Args:
            tasks: the tasks that the learner knows, all of which are here.

        Raises:
            ValueError: they share other weights, e.g. since they were cast.
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

    def _locked(self) -> AbstractContextManager[None]:
        """The lock is inside the folder, since the one around it may belong to somebody else."""
        advice = "wait for it, or give this learner a folder of its own"
        return held(self.path / ".lock", f"another process is learning in {self.path}: {advice}")

    def write(self, tasks: Tasks, names: Sequence[str], learned: bool = False) -> None:
        """Write some tasks, and what all share if these are all of them or it is not there: everything or nothing.

        They count from now on; `put_in_place` is to follow.

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

    def put_in_place(self) -> None:
        """Move what was written to where it belongs."""
        if self._new.exists():
            for path in sorted(self._new.iterdir()):
                if path.name == LEARNED:
                    self.unfinished.unlink(missing_ok=True)
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

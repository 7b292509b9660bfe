"""A learner's folder: what lies in it, in which order it is written, and what counts after a kill."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from batchensemble import files
from batchensemble.checkpoint import DamagedCheckpoint
from batchensemble.disk import held
from batchensemble.lifelong import storage
from batchensemble.lifelong.beginning import Beginning
from batchensemble.lifelong.checkpoint import Checkpoint, read_checkpoint
from batchensemble.lifelong.data import Part
from batchensemble.lifelong.head import HeadRule
from batchensemble.lifelong.identity import digest, of_rows
from batchensemble.lifelong.network import Tasks
from batchensemble.lifelong.training import Training


@dataclass(frozen=True)
class Folder:
    """A learner's folder: `shared.safetensors`, a file per task, and the checkpoint of what is being learned.

    Without shared weights, no task counts; shared weights without any task are those of a first one cut short. Tasks
    that were learned together count once all of their files are there.
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

    def _files(self) -> set[Path]:
        """The files of all tasks."""
        return set(self.path.glob("task-*.safetensors"))

    def _whole(self) -> set[Path]:
        """The files of the tasks that count, unread."""
        return self._files() - self._torn() if self.shared.exists() else set()

    def _torn(self) -> set[Path]:
        """Files of tasks that were learned together, if a kill came before the last of them was written."""
        together = self._just_learned()
        return set() if together <= self._files() else together

    def _just_learned(self) -> set[Path]:
        """The files of tasks whose training was done, but whose checkpoint is still there after a kill."""
        state = None
        with suppress(DamagedCheckpoint):  # it is reported when the next task is learned
            state = read_checkpoint(self.unfinished)
        if not state or "optimizer" in state:  # the training was not done
            return set()
        return {self.task(name) for name, *_ in state["identity"]["tasks"]}

    # ---- reading -------------------------------------------------------------------------------------------------

    def load_(self, tasks: Tasks, rule: HeadRule) -> None:
        """Read everything that counts, in the order in which it was learned.

        Args:
            tasks: where to put it; no task is known there yet.
            rule: how heads are made.
        """
        paths = sorted(self._whole(), key=lambda path: (int(files.read(path, "task")[1]["number"]), path.name))
        if not paths:
            return
        storage.load_shared_(tasks, self.shared)
        shared = files.fingerprints(tasks.ensemble.net)
        for path in paths:
            storage.load_task_(tasks, path, rule, shared)

    # ---- writing -------------------------------------------------------------------------------------------------

    @contextmanager
    def held(self, known: Iterable[str]) -> Iterator[None]:
        """Reserve the folder for this process alone, until it is released or the process ends.

        The lock is inside the folder, since the one around it may belong to somebody else.

        Args:
            known: names of all tasks that the learner knows.

        Raises:
            Busy: another process is learning here.
            ValueError: the folder holds tasks that the learner does not know.
        """
        advice = "wait for it, or give this learner a folder of its own"
        with held(self.path / ".lock", f"another process is learning in {self.path}: {advice}"):
            unknown = self._whole() - {self.task(name) for name in known}
            if unknown:
                raise ValueError(
                    f"{self.path} holds tasks that were not there when it was opened, "
                    f"{', '.join(sorted(path.name for path in unknown))}: open it with a new learner"
                )
            yield

    def checkpoint(
        self,
        known: Tasks,
        settled: bool,
        beginning: Beginning,
        trainee: Tasks,
        parts: Sequence[Part],
        training: Training,
    ) -> Checkpoint:
        """The checkpoint of new tasks' training, identified by everything that would make it another training.

        Args:
            known: the tasks so far.
            settled: whether their shared weights are final.
            beginning: how new ones start.
            trainee: the new ones.
            parts: their data.
            training: how they are trained.
        """
        identity = {
            "tasks": [[part.name, part.classes, len(part)] for part in parts],
            "data": [of_rows(part, training.workers) for part in parts],
            "laterals": [head.sources for head in trainee.heads],
            "settings": training.identity(),
            "options": [beginning.start, beginning.laterals, beginning.seed, known.learned, settled],
            "shared weights": digest(files.fingerprints(known.ensemble.net)),
        }
        return Checkpoint(self.unfinished, identity)

    def save(self, tasks: Tasks, names: Sequence[str]) -> None:
        """Write some tasks; if these are all of them, first what they share.

        Args:
            tasks: all tasks.
            names: names of those to write.

        Raises:
            ValueError: all tasks are to be written, and the folder holds others.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        if len(names) == len(tasks.names):
            strangers = self._files() - {self.task(name) for name in names}
            if strangers:
                raise ValueError(
                    f"{self.path} holds other tasks, {', '.join(sorted(path.name for path in strangers))}: "
                    "delete them, or choose another folder"
                )
            storage.save_shared(tasks, self.shared)
        shared = files.fingerprints(tasks.ensemble.net)
        for name in names:
            storage.save_task(tasks, tasks.place(name), self.task(name), shared)

    def finish(self, tasks: Tasks, names: Sequence[str]) -> None:
        """Write what was just learned, as `save` does; only then is its checkpoint deleted."""
        self.save(tasks, names)
        self.unfinished.unlink(missing_ok=True)

    def forget(self, tasks: Tasks, name: str) -> None:
        """Delete the file of a task that was dropped.

        Every file says how many tasks had been learned when it was written. If only this one knew of the last of them,
        another is written again first: what the next task starts with depends on their number.

        Args:
            tasks: those that stay.
            name: the task that was dropped.
        """
        if (together := self._just_learned()) and together <= self._files():
            self.unfinished.unlink()  # or, once a file is gone, it would look as if a kill had come in between
        newest = max(tasks.numbers)
        if newest + 1 < tasks.learned:
            place = tasks.numbers.index(newest)
            storage.save_task(tasks, place, self.task(tasks.names[place]))
        self.task(name).unlink(missing_ok=True)

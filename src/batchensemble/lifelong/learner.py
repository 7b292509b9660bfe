"""One member per task: the first task trains the shared weights, every later one only its own vectors and head."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, Self
from weakref import WeakSet

import torch
from torch import Tensor, nn

from batchensemble import files
from batchensemble.ensemble import convert
from batchensemble.lifelong import storage
from batchensemble.lifelong.beginning import Beginning, Start
from batchensemble.lifelong.checkpoint import Checkpoint
from batchensemble.lifelong.data import Batch, Part, Pool, TaskData, parts_of
from batchensemble.lifelong.folder import Folder
from batchensemble.lifelong.head import HeadRule
from batchensemble.lifelong.identity import digest, of_rows
from batchensemble.lifelong.loop import Loop, Objective
from batchensemble.lifelong.names import checked_name
from batchensemble.lifelong.network import Tasks, joined
from batchensemble.lifelong.progress import Progress, shown
from batchensemble.lifelong.similarity import similarities
from batchensemble.lifelong.stall import skill, warn_if_stalled
from batchensemble.lifelong.statistics import own_statistics_
from batchensemble.lifelong.training import Epoch, Training
from batchensemble.locks import Busy
from batchensemble.nn.conversion.selection import Rule
from batchensemble.nn.init import Init
from batchensemble.nn.integers import check_count
from batchensemble.nn.routing.rows import places_of
from batchensemble.optim import freeze_shared_, parameter_groups
from batchensemble.prediction import Prediction

Norm = Literal["shared", "statistics", "member"]
_CHANGING: "WeakSet[Learner]" = WeakSet()  # not in the learner: no copy of it is being changed
_one_at_a_time = threading.Lock()


class Learner(nn.Module):
    """Learns task after task and forgets none: task t has the weight `W ∘ s_t r_tᵀ` and a head of its own.

    The first task trains W, r_1, s_1 and its head; a later one only r_t, s_t, its biases and its head. Once a task has
    been learned, its answers never change, bit for bit: shared weights and norm statistics are frozen then. A learner
    is always in evaluation mode, since training happens in a twin.

    Args:
        backbone: a network that returns features; left untouched.
        head: number of features it returns (a head is then `nn.Linear(features, classes)`), or a function from the
            number of classes to a head.
        rank: components of a task's fast matrix; 1 is the paper's.
        norm: `member`: every task has norms of its own; `statistics`: scales and shifts are shared and frozen after
            the first task, and only running statistics are a task's own, as they are anyway in batch norms that
            `include` and `exclude` leave out; `shared`: everything is frozen.
        init: how r and s start, as in `batchensemble.convert`.
        start: later tasks start as the `first` task, as the most `similar` one, or as `init` says: the paper's way,
            which scrambles what the first task learned and is harder to recover from.
        laterals: number of earlier tasks, the most similar ones, whose features a new task also uses.
        pretrained: the shared weights are good as they are, and no task trains them. Goes with `init="ones"`.
        include: layers that get fast weights, as in `batchensemble.convert`.
        exclude: layers to leave plain, in the same form.
        training: how tasks are trained, unless `learn` is told otherwise.
        folder: where what is learned, and what is being learned, is kept; what is there already is read.
        seed: seed for heads, r and s.

    Examples:
        >>> _ = torch.manual_seed(0)
        >>> backbone = nn.Sequential(nn.Linear(4, 64), nn.ReLU())
        >>> learner = Learner(backbone, head=64, training=Training(epochs=10, batch_size=16))
        >>> x = torch.randn(64, 4)
        >>> for name, label in {"first": x[:, 0] > 0, "second": x[:, 1] > 0}.items():
        ...     _ = learner.learn((x, label.long()), name)
        >>> learner.tasks, learner.predict(x, task="second").probs.shape
        (('first', 'second'), torch.Size([64, 2]))
    """

    def __init__(
        self,
        backbone: nn.Module,
        head: HeadRule,
        *,
        rank: int = 1,
        norm: Norm = "member",
        init: Init = "sign",
        start: Start = "first",
        laterals: int = 0,
        pretrained: bool = False,
        include: Rule = None,
        exclude: Rule = None,
        training: Training | None = None,
        folder: str | Path | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.beginning = Beginning(head, start, laterals, seed)
        generator = torch.Generator().manual_seed(seed)
        chosen: dict[str, Any] = {"include": include, "exclude": exclude, "generator": generator}
        if norm not in ("shared", "statistics", "member"):
            raise ValueError(f"norm must be 'shared', 'statistics' or 'member', got {norm!r}")
        norms: Literal["shared", "member"] = "member" if norm == "member" else "shared"
        body = convert(backbone, 1, rank=rank, norm=norms, init=init, combine=None, **chosen)
        if norm != "shared":
            own_statistics_(body)
        self.network = Tasks(body)
        self.training_settings = training or Training()
        self.folder = None if folder is None else Folder(Path(folder).absolute())  # wherever the process goes later
        self._pretrained = pretrained
        if pretrained:
            freeze_shared_(body)
        self.eval()
        if self.folder is not None:
            self.folder.load_(self.network, self.beginning.head)

    def train(self, mode: bool = True) -> Self:
        """Do nothing: a learner stays in evaluation mode, so that no call can change what tasks share."""
        return super().train(False)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks, in the order in which they were learned."""
        return tuple(self.network.names)

    @property
    def _settled(self) -> bool:
        """Whether the shared weights are final."""
        return self._pretrained or bool(self.tasks)

    # ---- learning ------------------------------------------------------------------------------------------------

    def learn(
        self,
        data: TaskData,
        name: str | int | None = None,
        *,
        classes: int | None = None,
        training: Training | None = None,
        progress: bool | Progress = False,
    ) -> list[Epoch]:
        """Learn one task. If it is interrupted, another call on the same `folder` continues where it was.

        Args:
            data: inputs `(N, ...)` and labels `(N,)`, or a map-style dataset of (input, label).
            name: name of the task; by default the number of tasks learned before.
            classes: number of classes; counted if labels are a tensor.
            training: how to train; by default the learner's own `training`.
            progress: show a bar, or call this after every epoch.

        Returns:
            What happened in every epoch.
        """
        name = checked_name(self._free_name() if name is None else name)
        counts = None if classes is None else {name: classes}
        return self.learn_together({name: data}, classes=counts, training=training, progress=progress)

    def learn_together(
        self,
        tasks: Mapping[str, TaskData],
        *,
        classes: Mapping[str, int] | None = None,
        training: Training | None = None,
        progress: bool | Progress = False,
    ) -> list[Epoch]:
        """Learn tasks that arrive together in one pass: every batch mixes their rows, each with its own task.

        If they are the first tasks that a learner learns, they train the shared weights together.

        Args:
            tasks: data by name.
            classes: numbers of classes by name.
            training: see `learn`.
            progress: see `learn`.
        """
        parts = parts_of(tasks, classes or {}, self.tasks)
        with self._held():
            return self._learn(parts, training or self.training_settings, progress)

    def _learn(self, parts: tuple[Part, ...], training: Training, progress: bool | Progress) -> list[Epoch]:
        trainee = self._trainee(parts, training)
        self._check_sources(trainee)
        checkpoint = self._checkpoint(trainee, parts, training.workers)
        groups = parameter_groups(trainee, training.lr, training.weight_decay, training.fast_lr_scale)
        with shown(progress) as tell:
            loop = Loop(trainee, _objective(trainee, training), groups, Pool(parts), training, checkpoint, tell)
            history = loop.run()
        first, network = self.network.skill, self._joined_by(trainee)
        if first is None and history:
            network.skill = skill(history[-1].accuracy, parts)
        self._become(network, trainee.names, learned=True)
        if first is not None and history:
            warn_if_stalled(history[-1], parts, first, self.network.ensemble.settings.rank)
        return history

    def similarity(self, data: TaskData, classes: int | None = None) -> dict[str, float]:
        """How well each known task's features tell a new task's classes apart, by name.

        This is the accuracy of the nearest class mean on rows that are not in the means, from at most 512 rows.

        Args:
            data: as in `learn`.
            classes: as in `learn`.
        """
        part = Part.of("new", data, classes)
        return similarities(self.network, part, self.beginning.seed, self.training_settings.augment)

    def _trainee(self, parts: Sequence[Part], training: Training) -> Tasks:
        """The new tasks, untrained, in training mode."""
        if self._settled:
            return self.beginning.later(self.network, parts, training.augment)
        return self.beginning.first(self.network, parts)

    def _check_sources(self, tasks: Tasks) -> None:
        """Refuse tasks that look at others than those in the folder: with their files, nobody could open it."""
        if self.folder is not None:
            self.folder.check_known(self.network, tasks.sources)

    def _checkpoint(self, trainee: Tasks, parts: Sequence[Part], workers: int) -> Checkpoint | None:
        """Where a training is kept while it lasts, identified by all of this learner that would make it another one."""
        if self.folder is None:
            return None
        begins = self.beginning
        identity = {
            "tasks": [[part.name, part.classes, len(part)] for part in parts],
            "data": [of_rows(part, workers) for part in parts],
            "laterals": [head.sources for head in trainee.task_heads],
            "options": [begins.start, begins.laterals, begins.seed, self.network.learned, self._settled],
            "shared weights": digest(files.fingerprints(self.network.ensemble.net)),
        }
        return self.folder.checkpoint(identity)

    def _joined_by(self, trainee: Tasks) -> Tasks:
        """All tasks, those in training included."""
        if not self._settled:
            return Tasks(trainee.ensemble, trainee.names, trainee.task_heads)
        network = self.network.twin()
        network.adopt(trainee)
        return network

    @contextmanager
    def _held(self) -> Iterator[None]:
        """For everything that changes the tasks: one at a time, by a learner that knows what is in its folder."""
        with _one_at_a_time:
            if self in _CHANGING:
                raise Busy("another thread is changing this learner: wait for it")
            _CHANGING.add(self)
        try:
            with self.folder.held(self.network) if self.folder else nullcontext():
                yield
        finally:
            _CHANGING.discard(self)

    def _become(self, network: Tasks, names: Sequence[str], learned: bool = False) -> None:
        """Write tasks of a network, then be it: if they cannot be written, the learner is as it was."""
        network.eval()
        if self.folder is not None:
            self.folder.write(network, names, learned)
        self.network = network.requires_grad_(False)

    def _free_name(self) -> int:
        number = self.network.learned
        while str(number) in self.tasks:
            number += 1
        return number

    # ---- answering -----------------------------------------------------------------------------------------------

    def forward(self, x: Tensor, task: Any) -> Tensor:
        """Logits `(N, classes)`; see `predict` for `task`."""
        logits: Tensor = self.network(x, self.network.places(task, len(x), x.device))
        return logits

    @torch.no_grad()
    def predict(self, x: Tensor, task: Any, batch_size: int | None = None) -> Prediction:
        """Predict all rows as one task, or each row as its own task.

        Args:
            x: inputs `(N, ...)`.
            task: a name; or one name per row, as a sequence or (for names that are numbers) a tensor. Rows may then
                have different numbers of classes: all get as many as the largest task among them has, and those that a
                row's task does not have get probability zero.
            batch_size: rows per pass; all at once by default.
        """
        places = self.network.places(task, len(x), x.device)
        size = max(1, len(x)) if batch_size is None else check_count("batch_size", batch_size)
        parts = x.split(size)
        each = places.split(size) if isinstance(places, Tensor) else [places] * len(parts)
        return Prediction(joined([self.network(*part) for part in zip(parts, each, strict=True)])[None])

    def extract(self, task: str | int) -> nn.Module:
        """A task as a plain network, `backbone` then `head`, that needs nothing from this library."""
        return self.network.extract(task)

    # ---- tasks come and go ---------------------------------------------------------------------------------------

    def forget(self, task: str | int) -> None:
        """Forget a task, and delete its file in the learner's folder; the others answer as before.

        Raises:
            ValueError: it is the only one, or another task looks at it.
        """
        with self._held():
            network = self.network.twin()
            network.drop(task)
            if self.folder is not None:
                self.folder.forget(network, str(task))
            self.network = network.eval()

    def save_task(self, task: str | int, path: str | Path) -> None:
        """Write a task's vectors, biases, norms and head: kilobytes, for learners with the same shared weights."""
        storage.save_task(self.network, self.network.place(task), Path(path))

    def load_task(self, path: str | Path, name: str | int | None = None) -> str:
        """Add the task in a file and return its name; a file saved with other shared weights is refused.

        Args:
            path: a file written by `save_task`.
            name: by default the one in the file.
        """
        wanted = None if name is None else checked_name(name)
        with self._held():
            network = self.network.twin()
            taken = storage.load_task_(network, Path(path), self.beginning.head, wanted)
            self._check_sources(network)
            self._become(network, [taken])
        return taken

    def save(self, folder: str | Path) -> None:
        """Write everything to a folder that `Learner(..., folder=...)` reads: shared weights, and a file per task.

        A learner that is there already is replaced; a process killed at any moment leaves the old one or the new one.

        Raises:
            Busy: another process is learning there.
            ValueError: the folder holds tasks that this learner does not know.
        """
        there = Folder(Path(folder).absolute())
        with there.held(self.network, to_replace=True):
            there.write(self.network, self.tasks)


def _objective(trainee: Tasks, training: Training) -> Objective:
    alone = len(trainee.names) == 1
    classes = [head.classes for head in trainee.task_heads]
    alike = len(set(classes)) == 1

    def objective(batch: Batch) -> tuple[Tensor, Tensor]:
        logits = trainee(batch.x, 0 if alone else batch.task)
        if alike:
            return training.loss(logits, batch.y), logits
        widths = torch.tensor(classes, device=batch.task.device)[batch.task]  # each row's own number of classes
        parts = [(training.loss(logits[rows, :width], batch.y[rows]), len(rows)) for width, rows in places_of(widths)]
        return torch.stack([loss * count for loss, count in parts]).sum() / len(batch.y), logits

    return objective

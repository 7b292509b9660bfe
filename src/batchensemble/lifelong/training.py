"""A short training loop on plain torch: seeded by epoch, saved by epoch, resumed where it was killed."""

import math
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from batchensemble.lifelong.checkpoint import Checkpoint
from batchensemble.lifelong.data import Batch, Pool, batches, steps_of
from batchensemble.optim import Diverged, half_cosine
from batchensemble.seeds import seed_of, seeded

Groups = list[dict[str, Any]]
Objective = Callable[[Batch], tuple[Tensor, Tensor]]
"""A batch to the loss that is minimised and the logits that are counted."""


def nesterov(groups: Groups) -> torch.optim.Optimizer:
    """Stochastic gradient descent with Nesterov's momentum of 0.9."""
    return torch.optim.SGD(groups, momentum=0.9, nesterov=True)


@dataclass(frozen=True)
class Training:
    """How a task is trained.

    Args:
        epochs: passes over the task's rows; zero makes a task without training it.
        batch_size: rows per step.
        lr: learning rate.
        weight_decay: weight decay of shared weights and heads; vectors, biases and norms do not decay.
        fast_lr_scale: learning rate of r and s relative to `lr`.
        seed: seed for the order of rows and everything else drawn in training.
        workers: processes that read a dataset.
        autocast: a dtype to multiply in, such as `torch.bfloat16`.
        augment: changes a batch of inputs on its device, e.g. crops; draws from torch's default generator.
        loss: (logits, labels) to a scalar.
        optimizer: parameter groups, each with its `lr` and `weight_decay`, to an optimiser.
        schedule: share of the training that is done, in `[0, 1)`, to a factor of all learning rates.
        around_step: number of a step, from 0 in every training, to a context that it runs in, e.g. a profiler's.
        after_epoch: called after every epoch, before its checkpoint is written, so that no checkpoint holds an epoch
            that this was not told about; after a kill in between, the epoch is repeated and reported again.
    """

    epochs: int = 10
    batch_size: int = 128
    lr: float = 0.1
    weight_decay: float = 5e-4
    fast_lr_scale: float = 1.0
    seed: int = 0
    workers: int = 0
    autocast: torch.dtype | None = None
    augment: Callable[[Tensor], Tensor] | None = field(default=None, repr=False)
    loss: Callable[[Tensor, Tensor], Tensor] = field(default=F.cross_entropy, repr=False)
    optimizer: Callable[[Groups], torch.optim.Optimizer] = field(default=nesterov, repr=False)
    schedule: Callable[[float], float] = field(default=half_cosine, repr=False)
    around_step: Callable[[int], AbstractContextManager[Any]] | None = field(default=None, repr=False)
    after_epoch: Callable[["Epoch"], None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.epochs < 0 or self.batch_size < 1:
            raise ValueError(
                f"epochs must be at least 0 and batch_size at least 1, got {self.epochs} and {self.batch_size}"
            )

    def numbers(self) -> dict[str, Any]:
        """The settings that are numbers: what a checkpoint must agree with."""
        return {f.name: getattr(self, f.name) for f in fields(self) if isinstance(getattr(self, f.name), int | float)}


@dataclass(frozen=True)
class Epoch:
    """What happened in one pass, measured while training.

    Attributes:
        names: the tasks that train.
        epoch: counted from 1.
        epochs: how many there will be.
        loss: mean loss.
        accuracy: share of rows classified right while training.
        seconds: how long it took.
    """

    names: tuple[str, ...]
    epoch: int
    epochs: int
    loss: float
    accuracy: float
    seconds: float


@dataclass
class Loop:
    """One training: what is trained, on what, how, and who is told.

    Args:
        module: holds the parameters; a checkpoint keeps those of its tensors that are not frozen.
        objective: what is minimised.
        groups: the parameters to train.
        pool: the rows.
        training: how.
        checkpoint: where the training is kept while it lasts; the file stays when it is done.
        progress: told about every epoch, after its checkpoint.
        after_step: called after every step, e.g. for a proximal operator.
    """

    module: nn.Module
    objective: Objective
    groups: Groups
    pool: Pool
    training: Training
    checkpoint: Checkpoint | None = None
    progress: Callable[[Epoch], None] | None = None
    after_step: Callable[[], None] | None = None

    def run(self) -> list[Epoch]:
        """Train, or continue where an earlier process was killed; returns every epoch.

        Everything random follows from seed and epoch, so that both end with the same weights.

        Raises:
            Diverged: the loss is not finite.
        """
        groups = [{**group, "params": [p for p in group["params"] if p.requires_grad]} for group in self.groups]
        optimizer = self.training.optimizer([group for group in groups if group["params"]])
        rates = [float(group["lr"]) for group in optimizer.param_groups]
        self._identify(optimizer)
        history = self._restored(optimizer)
        devices = {p.device for p in self.module.parameters()}
        for epoch in range(len(history), self.training.epochs):
            seed = seed_of(self.training.seed, epoch)
            with seeded(seed, *devices):
                history.append(self._epoch(epoch, seed, optimizer, rates))
            if self.training.after_epoch:
                self.training.after_epoch(history[-1])
            self._save(optimizer, history)
            if self.progress:
                self.progress(history[-1])
        return history

    def _identify(self, optimizer: torch.optim.Optimizer) -> None:
        """Identify the training by its tensors, optimiser and precision, too: a checkpoint with others is another's."""
        if self.checkpoint:
            how = {
                "tensors": {name: list(tensor.shape) for name, tensor in self._trained().items()},
                "optimizer": type(optimizer).__name__,
                "autocast": str(self.training.autocast),
            }
            self.checkpoint = replace(self.checkpoint, identity={**self.checkpoint.identity, **how})

    def _epoch(self, epoch: int, seed: int, optimizer: torch.optim.Optimizer, rates: Iterable[float]) -> Epoch:
        training, began = self.training, time.perf_counter()
        steps = steps_of(self.pool, training.batch_size)
        device = next(self.module.parameters()).device
        loss_sum, right, rows = torch.zeros((), device=device), torch.zeros((), device=device), 0
        for step, batch in enumerate(batches(self.pool, training.batch_size, seed, training.workers)):
            factor = training.schedule((epoch + step / steps) / training.epochs)
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * factor
            around = training.around_step
            with around(epoch * steps + step) if around else nullcontext():
                loss, logits = self._step(self._moved(batch, device), optimizer)
            labels = batch.y.to(device, non_blocking=True)
            loss_sum, right = loss_sum + loss, right + (logits.argmax(-1) == labels).sum()
            rows += len(labels)
        mean, names = float(loss_sum) / steps, tuple(part.name for part in self.pool.parts)
        if not math.isfinite(mean):
            raise Diverged(f"the loss of {', '.join(names)} is {mean} in epoch {epoch + 1}: try a lower learning rate")
        seconds = round(time.perf_counter() - began, 4)
        return Epoch(names, epoch + 1, training.epochs, mean, float(right) / rows, seconds)

    def _step(self, batch: Batch, optimizer: torch.optim.Optimizer) -> tuple[Tensor, Tensor]:
        dtype = self.training.autocast
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(batch.x.device.type, dtype) if dtype else nullcontext():
            loss, logits = self.objective(batch)
        loss.backward()
        optimizer.step()
        if self.after_step:
            self.after_step()
        return loss.detach(), logits.detach()

    def _moved(self, batch: Batch, device: torch.device) -> Batch:
        x, y, task = (tensor.to(device, non_blocking=True) for tensor in batch)
        return Batch(self.training.augment(x) if self.training.augment else x, y, task)

    def _save(self, optimizer: torch.optim.Optimizer, history: list[Epoch]) -> None:
        if self.checkpoint:
            epochs = [{**asdict(epoch), "names": list(epoch.names)} for epoch in history]
            state: dict[str, Any] = {"module": self._trained(), "epochs": epochs}
            if len(history) < self.training.epochs:
                state["optimizer"] = optimizer.state_dict()
            self.checkpoint.save(state)

    def _trained(self) -> dict[str, Tensor]:
        frozen = {name for name, p in self.module.named_parameters(remove_duplicate=False) if not p.requires_grad}
        return {name: tensor for name, tensor in self.module.state_dict().items() if name not in frozen}

    def _restored(self, optimizer: torch.optim.Optimizer) -> list[Epoch]:
        """Restore a saved state, and return the epochs that are done already."""
        state = self.checkpoint.load() if self.checkpoint else None
        if state is None:
            return []
        self.module.load_state_dict(state["module"], strict=False)
        if "optimizer" in state:
            optimizer.load_state_dict(state["optimizer"])
        return [Epoch(**{**epoch, "names": tuple(epoch["names"])}) for epoch in state["epochs"]]

"""The training loop of the laboratory's classifiers and translators."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from batchensemble.checkpoint import DamagedCheckpoint, load_checkpoint, save_checkpoint
from batchensemble.lab.training.batches import Batches
from batchensemble.lab.training.log import Log, read_log
from batchensemble.lab.training.progress import Progress
from batchensemble.lab.training.schedules import Schedule
from batchensemble.lab.training.step import Loss, Replayed, Step
from batchensemble.optim import Diverged
from batchensemble.seeds import seed_of, seeded

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True)
class TrainingJob:
    """Everything that defines a training.

    Args:
        model: the network, trained in place.
        loss: maps (model, batch) to scalars by name; `loss` is minimised, all are logged.
        batches: the training data.
        optimizer: built over the model's parameters.
        schedule: factor of the optimiser's learning rates.
        epochs: number of epochs.
        seed: seeds dropout and anything else the model draws in training.
        after_epoch: returns more numbers for the log, e.g. on a validation set; must leave the model in training mode.
        until: whether to stop, given an epoch's line of the log; all processes must agree.
    """

    model: nn.Module
    loss: Loss
    batches: Batches
    optimizer: torch.optim.Optimizer
    schedule: Schedule
    epochs: int
    seed: int = 0
    after_epoch: Callable[[int], Mapping[str, float]] | None = None
    until: Callable[[Mapping[str, float]], bool] | None = None

    def ends_with(self, line: Mapping[str, float]) -> bool:
        """Whether training ends with the epoch of this line."""
        return line["epoch"] + 1 == self.epochs or (self.until is not None and self.until(line))


@dataclass(frozen=True)
class Workplace:
    """Where a training takes place; up to rounding, nothing here changes its outcome.

    Args:
        fabric: device, precision and processes.
        folder: where the checkpoint, the log and the curves go.
        progress: displays how far the training is.
        save_every: seconds between checkpoints.
        compiled: whether to compile the step on a GPU; not worthwhile if batches have many shapes.
    """

    fabric: "Fabric"
    folder: Path
    progress: Progress = field(default_factory=Progress)
    save_every: float = 60.0
    compiled: bool = True

    @property
    def checkpoint(self) -> Path:
        """What a killed training continues from."""
        return self.folder / "last.pt"


def fit(training: TrainingJob, place: Workplace, name: str = "training") -> list[dict[str, float]]:
    """Train, or resume an interrupted training, and return the log, one mapping per epoch.

    Everything random is a function of seed, epoch and process. A training killed at any moment and resumed therefore
    ends with the same weights, bit for bit, as one that ran through (on a GPU: if its kernels are deterministic).

    Raises:
        Diverged: the loss is not finite.
        DamagedCheckpoint: an earlier call's checkpoint is damaged, or its log is missing or too short.
        OSError: a checkpoint cannot be written; the previous one is intact.
    """
    fabric = place.fabric
    rates = [float(group["lr"]) for group in training.optimizer.param_groups]
    begin = _restore(training, place.checkpoint, fabric.device)
    fabric.barrier()  # no process writes before all have read
    done = read_log(place.folder)[:begin]
    if len(done) < begin:
        told = f"{place.folder / 'log.jsonl'} tells of {len(done)} epochs, {place.checkpoint.name} of {begin}"
        raise DamagedCheckpoint(f"{told}: delete {place.folder} to train from the start")
    if not (done and training.ends_with(done[-1])):
        with Log(place.folder, begin, write=fabric.is_global_zero) as log:
            place.progress.start(name, training.epochs, begin)
            _train(training, place, log, rates, begin)
            place.progress.end()
    fabric.barrier()
    return read_log(place.folder)


def _train(training: TrainingJob, place: Workplace, log: Log, rates: list[float], begin: int) -> None:
    """Train from an epoch to the last, with a line of the log for each, and a checkpoint from time to time."""
    fabric, step, clock = place.fabric, _step(training, place), _Clock(place.save_every)
    for epoch in range(begin, training.epochs):
        with seeded(seed_of(training.seed, epoch, fabric.global_rank), fabric.device):
            line = _epoch(training, fabric, step, rates, epoch)
        log.write(line)
        place.progress.advance(f"loss {line['loss']:.3f}")
        last = training.ends_with(line)
        if fabric.is_global_zero and (last or clock.is_due()):
            save_checkpoint(place.checkpoint, _state(training, epoch + 1))
        if last:
            return


def _epoch(
    training: TrainingJob,
    fabric: "Fabric",
    step: Callable[[Any], Mapping[str, Tensor]],
    rates: list[float],
    epoch: int,
) -> dict[str, float]:
    """Train for one epoch and return its log line: the mean scalars, the learning rate and the time."""
    began, steps = time.perf_counter(), len(training.batches)
    sums: dict[str, Tensor] = {}
    for i, batch in enumerate(training.batches.epoch(epoch)):
        factor = training.schedule(epoch + i / steps, training.epochs)
        _set_rates_(training.optimizer, rates, factor)
        for scalar, value in step(batch).items():
            sums[scalar] = sums.get(scalar, 0) + value.float()
    means = {scalar: float(fabric.all_reduce(total / steps)) for scalar, total in sums.items()}
    if not math.isfinite(means["loss"]):
        raise Diverged(f"the loss is {means['loss']} after epoch {epoch + 1}: try a lower learning rate")
    extra = dict(training.after_epoch(epoch)) if training.after_epoch else {}
    seconds = time.perf_counter() - began
    return {"epoch": epoch, **means, **extra, "rate": rates[0] * factor, "seconds": round(seconds, 4)}


def _step(training: TrainingJob, place: Workplace) -> Callable[[Any], Mapping[str, Tensor]]:
    """Build the fastest step for this device: replayed as a CUDA graph on a single GPU."""
    training.model.train()
    fabric = place.fabric
    step = Step(fabric, training.model, training.loss, training.optimizer, compiled=place.compiled)
    return Replayed(step) if fabric.device.type == "cuda" and fabric.world_size == 1 else step


class _Clock:
    """A timer that is due every `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._last = seconds, time.monotonic()

    def is_due(self) -> bool:
        due = time.monotonic() - self._last >= self._seconds
        self._last = time.monotonic() if due else self._last
        return due


def _set_rates_(optimizer: torch.optim.Optimizer, rates: list[float], factor: float) -> None:
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate * factor)
        else:
            group["lr"] = rate * factor


def _state(training: TrainingJob, epoch: int) -> dict[str, object]:
    return {
        "epoch": epoch,
        "model": training.model.state_dict(),
        "optimizer": training.optimizer.state_dict(),
    }


def _restore(training: TrainingJob, checkpoint: Path, device: torch.device) -> int:
    """Restore the checkpoint, if there is one, and return the epoch to continue from."""
    state = load_checkpoint(checkpoint, device)
    if state is None:
        return 0
    training.model.load_state_dict(state["model"])
    training.optimizer.load_state_dict(state["optimizer"])
    return int(state["epoch"])

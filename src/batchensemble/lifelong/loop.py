"""A short training loop on plain torch: seeded by epoch, saved by epoch, resumed where it was killed."""

import math
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from batchensemble.lifelong.checkpoint import Checkpoint
from batchensemble.lifelong.data import Batch, Pool, batches, steps_of
from batchensemble.lifelong.identity import of_optimizer
from batchensemble.lifelong.training import Epoch, Groups, Training
from batchensemble.optim import Diverged
from batchensemble.seeds import seed_of, seeded

Objective = Callable[[Batch], tuple[Tensor, Tensor]]
"""A batch to the loss that is minimised and the logits that are counted."""


@dataclass(frozen=True)
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
        checkpoint = self._identified(optimizer)
        history = self._restored(checkpoint, optimizer)
        devices = {p.device for p in self.module.parameters()}
        for epoch in range(len(history), self.training.epochs):
            seed = seed_of(self.training.seed, epoch)
            with seeded(seed, *devices):
                history.append(self._epoch(epoch, seed, optimizer, rates))
            if self.training.after_epoch:
                self.training.after_epoch(history[-1])
            self._save(checkpoint, optimizer, history)
            if self.progress:
                self.progress(history[-1])
        return history

    def _identified(self, optimizer: torch.optim.Optimizer) -> Checkpoint | None:
        """The checkpoint, identified by how it is trained, too: one with other tensors or functions is another's."""
        if self.checkpoint is None:
            return None
        tensors = {name: list(tensor.shape) for name, tensor in self._trained().items()}
        how = {**self.training.identity(), "optimizer": of_optimizer(optimizer), "tensors": tensors}
        return replace(self.checkpoint, identity={**self.checkpoint.identity, **how})

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
                batch = self._moved(batch, device)
                loss, logits = self._step(batch, optimizer)
            loss_sum, right = loss_sum + loss, right + (logits.argmax(-1) == batch.y).sum()
            rows += len(batch.y)
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

    def _save(self, checkpoint: Checkpoint | None, optimizer: torch.optim.Optimizer, history: list[Epoch]) -> None:
        if checkpoint:
            state: dict[str, Any] = {"module": self._trained(), "epochs": [asdict(epoch) for epoch in history]}
            if len(history) < self.training.epochs:
                state["optimizer"] = optimizer.state_dict()
            checkpoint.save(state)

    def _trained(self) -> dict[str, Tensor]:
        frozen = {name for name, p in self.module.named_parameters(remove_duplicate=False) if not p.requires_grad}
        return {name: tensor for name, tensor in self.module.state_dict().items() if name not in frozen}

    def _restored(self, checkpoint: Checkpoint | None, optimizer: torch.optim.Optimizer) -> list[Epoch]:
        """Restore a saved state, and return the epochs that are done already."""
        state = checkpoint.load() if checkpoint else None
        if state is None:
            return []
        self.module.load_state_dict(state["module"], strict=False)
        if "optimizer" in state:
            optimizer.load_state_dict(state["optimizer"])
        return [Epoch(**epoch) for epoch in state["epochs"]]

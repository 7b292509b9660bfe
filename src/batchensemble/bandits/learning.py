"""How a sampler learns from what it has observed: in the same way whenever the seed is the same."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from batchensemble import files
from batchensemble.bandits.ledger import Ledger
from batchensemble.ensemble import Ensemble
from batchensemble.optim import mean_loss, parameter_groups
from batchensemble.seeds import seeded

Loss = Callable[[Tensor, Tensor], Tensor]
"""Predicted and observed rewards, `(N,)` each, to one number."""


@dataclass(frozen=True)
class Training:
    """When and how a sampler trains: with Adam, every member on every row of a minibatch.

    Args:
        every: train whenever this many more rewards have come; with 0, only when `train` is called.
        steps: minibatches per training.
        batch_size: rows per minibatch, drawn with replacement from the buffer.
        lr: learning rate.
        fast_lr_scale: learning rate of r and s relative to the rest.
        weight_decay: weight decay of the shared weights.
        clip: largest norm of the gradient.
    """

    every: int = 50
    steps: int = 100
    batch_size: int = 256
    lr: float = 0.01
    fast_lr_scale: float = 1.0
    weight_decay: float = 0.0
    clip: float = 5.0

    def __post_init__(self) -> None:
        if self.every < 0 or self.steps < 1 or self.batch_size < 1:
            raise ValueError(f"expected every >= 0, steps >= 1 and batch_size >= 1, got {self}")


class Trainer:
    """The model with its optimiser.

    Args:
        model: what is trained, in place.
        training: how.
        loss: loss between predicted and observed rewards.
    """

    def __init__(self, model: Ensemble, training: Training, loss: Loss) -> None:
        self.model, self.training, self.loss = model.eval(), training, loss
        groups = parameter_groups(model, training.lr, training.weight_decay, training.fast_lr_scale)
        self.optimizer = torch.optim.Adam(groups)

    def train(self, ledger: Ledger, seed: int) -> bool:
        """Train once; if weights end up not finite, put everything back as it was and return `False`."""
        before = copy.deepcopy((self.model.state_dict(), self.optimizer.state_dict()))
        good = False
        try:
            self._steps(ledger, seed)
            good = all(bool(tensor.isfinite().all()) for tensor in self.model.parameters())
        finally:
            if not good:
                self.model.load_state_dict(before[0])
                self.optimizer.load_state_dict(before[1])
            self.model.eval()
        return good

    def _steps(self, ledger: Ledger, seed: int) -> None:
        chance = torch.Generator().manual_seed(seed)
        self.model.train()
        with seeded(seed, self.model.device):  # dropout
            for _ in range(self.training.steps):
                self._step(ledger, chance)

    def _step(self, ledger: Ledger, chance: torch.Generator) -> None:
        size = (min(self.training.batch_size, len(ledger)),)
        places = torch.randint(len(ledger), size, generator=chance, device=chance.device)
        contexts, arms, rewards = (part.to(self.model.device) for part in ledger.rows(places))
        outputs = self.model.members(contexts)  # (members, N, arms)
        chosen = outputs.gather(2, arms.expand(len(outputs), -1)[..., None])[..., 0]
        loss = mean_loss(self.loss, chosen, rewards.to(outputs.dtype))
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.training.clip)
        self.optimizer.step()

    def state(self) -> dict[str, Tensor]:
        """Weights and the optimiser's state, as tensors."""
        weights = {f"model.{name}": tensor for name, tensor in files.distinct_state(self.model.net).items()}
        memory = self.optimizer.state_dict()["state"]
        return weights | {
            f"optimizer.{number}.{name}": torch.as_tensor(value, device="cpu")
            for number, parts in memory.items()
            for name, value in parts.items()
        }

    def restore(self, path: Path, state: dict[str, Tensor]) -> None:
        """Restore everything from the tensors of a file; a file of another network is refused."""
        weights = under("model.", state)
        files.check_fit(path, weights, files.distinct_state(self.model.net))
        self.model.net.load_state_dict(weights, strict=False)  # tied tensors are stored once
        memory: dict[int, dict[str, Any]] = {}
        for name, value in under("optimizer.", state).items():
            number, _, part = name.partition(".")
            memory.setdefault(int(number), {})[part] = value.clone()
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": memory})


def under(prefix: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, named without it."""
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}

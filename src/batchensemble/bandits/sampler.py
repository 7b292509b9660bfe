"""Thompson sampling for services: decisions by id, rewards whenever they come, nothing lost in between."""

import copy
import math
import os
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from batchensemble import files
from batchensemble.bandits.contexts import Contexts
from batchensemble.bandits.journal import Event, Journal
from batchensemble.bandits.learning import Loss, Trainer, Training, under
from batchensemble.bandits.ledger import Decisions, Ledger, decision_event
from batchensemble.bandits.turns import checked_arms, with_turns
from batchensemble.bandits.weights import newest_weights, write_weights
from batchensemble.ensemble import Ensemble, convert
from batchensemble.prediction import Prediction
from batchensemble.seeds import seed_of


class ThompsonSampler:
    """Decides by asking one member, drawn anew for every context, and learns from the rewards.

    Members that agree exploit, members that differ explore: an arm is tried as often as members think it is best.
    A deep copy decides and learns as the original would; one with a folder cannot be copied.

    Args:
        model_or_net: a network from contexts `(N, ...)` to what every arm gives, `(N, arms)`, which is copied and
            converted; or an ensemble, which is used as it is and trained in place.
        members: number of members for a plain network; 8 by default.
        training: when and how it learns.
        loss: loss between predicted and observed rewards; `F.binary_cross_entropy_with_logits` for clicks.
        first_pulls: pulls of every arm, in turn, before the network decides.
        buffer: number of latest observations to learn from; all by default.
        folder: where everything is kept, so that a process killed at any moment loses nothing it had returned; what is
            there already is read. Without one, use `save`.
        seed: seed for members' vectors, decisions and minibatches.

    Examples:
        >>> net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
        >>> sampler = ThompsonSampler(net, members=4)
        >>> made = sampler.act(torch.randn(5, 3))
        >>> made.arms.shape, sampler.awaiting
        (torch.Size([5]), 5)
        >>> sampler.update(made.ids[:2], [1.0, 0.0])
        >>> sampler.awaiting, sampler.observed
        (3, 2)
    """

    def __init__(
        self,
        model_or_net: nn.Module,
        members: int | None = None,
        *,
        training: Training | None = None,
        loss: Loss = F.mse_loss,
        first_pulls: int = 1,
        buffer: int | None = None,
        folder: str | Path | None = None,
        seed: int = 0,
    ) -> None:
        if first_pulls < 0:
            raise ValueError(f"first_pulls must not be negative, got {first_pulls}")
        self.model = _ensemble(model_or_net, members, seed)
        self.seed, self.first_pulls, self.trainings = seed, first_pulls, 0
        self._trainer = Trainer(self.model, training or Training(), loss)
        self._ledger = Ledger(buffer)
        self._contexts = Contexts(self.model)
        self._lock = _Lock()
        self._journal: Journal | None = None
        self._closed = False
        if folder is not None:
            self._open(Path(folder).absolute())  # wherever the process goes later

    @property
    def decided(self) -> int:
        """Decisions ever made, and the id of the next."""
        return self._ledger.decided

    @property
    def awaiting(self) -> int:
        """Decisions without a reward."""
        return len(self._ledger.awaiting)

    @property
    def observed(self) -> int:
        """Rewards ever received."""
        return self._ledger.observed

    @torch.no_grad()
    def act(self, contexts: Tensor | Sequence[Any], arms: Tensor | Sequence[Any] | None = None) -> Decisions:
        """Choose an arm for every context, each by a member drawn for it.

        Args:
            contexts: `(N, ...)`, always of the same shape except for N. Integers become numbers of the network's type,
                unless it takes integers only, as embeddings do.
            arms: the arms that may be chosen, booleans `(arms,)` or `(N, arms)`, at least one for every row; all by
                default. An arm that could not have one of its first pulls has it as soon as it may be chosen.

        Raises:
            TypeError: arms that are no booleans; nothing is decided then.
            ValueError: contexts of another shape or not finite, arms of another shape or none for a row; nothing is
                decided then.

        Examples:
            >>> sampler = ThompsonSampler(nn.Linear(3, 4), members=2)
            >>> sampler.act(torch.randn(2, 3), arms=[False, False, True, False]).arms
            tensor([2, 2])
        """
        with self._lock:
            x = self._contexts.checked(contexts)
            first, count = self._ledger.decided, len(x)
            chance = torch.Generator().manual_seed(seed_of(self.seed, "decision", first))
            members = torch.randint(len(self.model), (count,), generator=chance, device="cpu")
            values = self._values(x, members)
            mask = checked_arms(arms, *values.shape)
            best = values.masked_fill(~mask.to(values.device), -math.inf).argmax(1).cpu()
            ids = torch.arange(first, first + count, device="cpu")
            chosen, owed = with_turns(best, mask, ids, self.first_pulls, self._ledger.owed)
            self._happen(decision_event(first, x, chosen, members, owed))
            return Decisions(ids, chosen, members)

    def update(self, ids: Tensor | Sequence[int] | int, rewards: Tensor | Sequence[float] | float) -> None:
        """Report the rewards of decisions, in any order, at any later time; trains when enough have come.

        Args:
            ids: ids of decisions that await their reward.
            rewards: one reward for each id.

        Raises:
            ValueError: an id whose decision awaits no reward, a reward that is not finite, or unequal numbers of ids
                and rewards; nothing is learned then.
        """
        with self._lock:
            numbers = torch.as_tensor(ids, device="cpu").reshape(-1)
            values = torch.as_tensor(rewards, dtype=torch.float32, device="cpu").detach().reshape(-1)
            if len(numbers) != len(values):
                raise ValueError(f"expected a reward for each of {len(numbers)} ids, got {len(values)}")
            if not values.isfinite().all():
                raise ValueError(f"rewards must be finite, got {values[~values.isfinite()][0].item()}")
            self._ledger.check_awaited(_integers(numbers))
            if len(numbers):
                self._happen({"ids": numbers.long(), "rewards": values})

    def drop(self, ids: Tensor | Sequence[int] | int) -> None:
        """Forget decisions whose reward will never come."""
        with self._lock:
            numbers = torch.as_tensor(ids, device="cpu").reshape(-1)
            self._ledger.check_awaited(_integers(numbers))
            self._happen({"ids": numbers.long()})

    def train(self) -> None:
        """Train once now, in addition to the trainings that rewards set off."""
        with self._lock:
            self._check_open()
            if not len(self._ledger):
                raise ValueError("there is no reward yet to learn from")
            self._train()

    def predict(self, contexts: Tensor | Sequence[Any]) -> Prediction:
        """What all members think of every arm: `mean` and `std` are `(N, arms)`."""
        with self._lock:
            x = self._contexts.checked(contexts)
            with self._contexts.fitting(x):
                return self.model.predict(x.to(self.model.device))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        with self._lock:  # no thread may change it meanwhile
            twin = copy.copy(self)
            memo[id(self)] = twin
            twin.__dict__ = copy.deepcopy(self.__dict__, memo)
            return twin

    # ---- checking --------------------------------------------------------------------------------------------------

    def _values(self, x: Tensor, members: Tensor) -> Tensor:
        """The members' values `(N, arms)`; the first contexts show whether they fit the network."""
        device = self.model.device
        with self._contexts.fitting(x):
            values = self.model(x.to(device), member=members.to(device))
        if not isinstance(values, Tensor) or values.ndim != 2 or len(values) != len(x):
            got = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise ValueError(f"the network must give (N, arms) for {len(x)} contexts, got {got}")
        if not values.isfinite().all():
            raise ValueError(
                "the network's values are not finite, so nothing was decided: are the contexts too large for it?"
            )
        return values

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the sampler was closed: nothing would be kept of this")

    # ---- events ----------------------------------------------------------------------------------------------------

    def _happen(self, event: Event) -> None:
        """Record an event first on the disk, then in memory, so that whatever was returned has been written."""
        self._check_open()
        if self._journal is not None:
            self._journal.append(event)
        self._apply(event)

    def _apply(self, event: Event, trained_at: int = 0) -> None:
        """Apply an event and what follows from it; trainings up to `trained_at` observations are not repeated."""
        before = self._ledger.observed
        self._ledger.apply(event)
        if "contexts" in event:
            self._contexts.shape = tuple(event["contexts"].shape[1:])
        every, now = self._trainer.training.every, self._ledger.observed
        if every and now // every > before // every and now > trained_at:
            self._train()

    def _train(self) -> None:
        good = self._trainer.train(self._ledger, seed_of(self.seed, "training", self.trainings + 1))
        self.trainings += 1
        if not good:
            warnings.warn(
                f"training {self.trainings} diverged, and the weights of before were kept: lower lr", stacklevel=4
            )
        if self._journal is not None:
            self._write_weights(self._journal.path.parent)

    def _write_weights(self, folder: Path) -> None:
        """Write weights after a training; if they do not fit, say that nothing is lost nevertheless."""
        try:
            write_weights(folder, self._trainer.state(), self.trainings, self.observed)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else error
            raise OSError(
                error.errno,
                f"{reason}: training {self.trainings} is done and all rewards are on the disk, but not its weights. Do "
                f"not report rewards again. The next training writes weights to {folder}; a restart before it repeats "
                "what rewards set off, but not what train() did",
            ) from error

    # ---- files -----------------------------------------------------------------------------------------------------

    def _open(self, folder: Path) -> None:
        """Continue what is in the folder, or start there."""
        folder.mkdir(parents=True, exist_ok=True)
        self._journal = Journal(folder / "journal")
        try:
            self._continue(folder, self._journal)
        except BaseException:
            self.close()
            raise

    def _continue(self, folder: Path, journal: Journal) -> None:
        found = newest_weights(folder)
        trained_at = 0
        if found is None and journal:
            raise ValueError(
                f"{folder} holds decisions, but the weights that made them are gone: restore weights-*.safetensors, "
                "or begin in another folder"
            )
        if found is None:
            write_weights(folder, self._trainer.state(), 0, 0)  # the network may start differently another time
        else:
            self._trainer.restore(found.path, found.tensors)
            self.trainings, trained_at = found.trainings, found.observed
        for event in journal.events():
            self._apply(event, trained_at)
        if self.observed < trained_at:
            raise ValueError(
                f"{journal.path} is truncated: {folder} was trained on {trained_at} rewards, it holds {self.observed}"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the folder; a sampler that had one no longer decides or learns."""
        with self._lock:
            if self._journal is not None:
                self._journal.close()
                self._journal, self._closed = None, True

    def save(self, path: str | Path) -> None:
        """Write everything to one file: weights, optimiser, observations, decisions that await their rewards."""
        with self._lock:
            ledger = {f"ledger.{name}": tensor for name, tensor in self._ledger.state().items()}
            header = {
                "members": len(self.model),
                "seed": self.seed,
                "first_pulls": self.first_pulls,
                "buffer": self._ledger.capacity,
                "trainings": self.trainings,
                "shape": self._contexts.shape,
            }
            files.write(path, "sampler", self._trainer.state() | ledger, header)

    @classmethod
    def load(
        cls, path: str | Path, model_or_net: nn.Module, *, training: Training | None = None, loss: Loss = F.mse_loss
    ) -> Self:
        """Read the sampler that `save` wrote.

        Args:
            path: its file.
            model_or_net: a network or ensemble like the sampler's: its class and sizes count, not its weights.
            training: when and how it learns from now on.
            loss: loss between predicted and observed rewards.
        """
        tensors, header = files.read(path, "sampler")
        members = None if isinstance(model_or_net, Ensemble) else header["members"]
        settings = {name: header[name] for name in ("first_pulls", "buffer", "seed")}
        sampler = cls(model_or_net, members, training=training, loss=loss, **settings)
        sampler._trainer.restore(Path(path), tensors)
        sampler._ledger.restore(under("ledger.", tensors))
        sampler.trainings = header["trainings"]
        sampler._contexts.shape = None if header["shape"] is None else tuple(header["shape"])
        return sampler


class _Lock:
    """A lock that one thread may take several times; a deep copy and a pickled one are locks of their own."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()


def _ensemble(model_or_net: nn.Module, members: int | None, seed: int) -> Ensemble:
    if isinstance(model_or_net, Ensemble):
        if members not in (None, len(model_or_net)):
            raise ValueError(f"the ensemble has {len(model_or_net)} members, not {members}")
        return model_or_net
    generator = torch.Generator().manual_seed(seed_of(seed, "members", 0))
    return convert(model_or_net, 8 if members is None else members, combine="mean", generator=generator)


def _integers(numbers: Tensor) -> list[int]:
    if numbers.numel() and (numbers.is_floating_point() or numbers.dtype == torch.bool):
        raise TypeError(f"ids must be integers, not {numbers.dtype}")
    return [int(number) for number in numbers.tolist()]

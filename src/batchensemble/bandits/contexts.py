"""Contexts, checked, copied and converted to the type that a network takes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from batchensemble.ensemble import Ensemble


class Contexts:
    """Checks contexts, and gives them the type that a network takes.

    Args:
        model: the network.

    Attributes:
        shape: that of one context; `None` until there was one.

    Examples:
        >>> import batchensemble as be
        >>> numbers = be.convert(torch.nn.Linear(2, 3), members=2).eval()
        >>> Contexts(numbers).checked([[1, 2]])
        tensor([[1., 2.]])
        >>> words = torch.nn.Sequential(torch.nn.Embedding(5, 4), torch.nn.Flatten(), torch.nn.Linear(8, 3))
        >>> Contexts(be.convert(words, members=2).eval()).checked([[1, 2]])
        tensor([[1, 2]])
    """

    def __init__(self, model: Ensemble) -> None:
        self.model = model
        self.shape: tuple[int, ...] | None = None
        self._are_integers: bool | None = None  # once integers were given: whether the network takes nothing else

    def checked(self, contexts: Tensor | Sequence[Any]) -> Tensor:
        """A copy of contexts `(N, ...)` on the CPU.

        Numbers have the network's own type. Integers stay integers if the network takes them only so, as embeddings do.

        Raises:
            ValueError: they have another shape than those before, are not finite, or the network refuses them.
        """
        given = torch.as_tensor(contexts, device="cpu").detach()
        if given.ndim < 2 or not given.numel():
            raise ValueError(f"expected contexts of shape (N, ...), got {tuple(given.shape)}")
        if self.shape is not None and tuple(given.shape[1:]) != self.shape:
            expected = ", ".join(map(str, ("N", *self.shape)))
            raise ValueError(f"expected contexts of shape ({expected}), got {tuple(given.shape)}")
        if given.is_complex() and not self.model.dtype.is_complex:
            raise ValueError(f"the network takes real contexts, got {given.dtype}")
        x = given.to(self._type_for(given), copy=True)  # the caller may reuse its own
        if not x.isfinite().all():
            raise ValueError("contexts must be finite, but hold NaN or infinity")
        if not given.is_floating_point() and not torch.equal(x.to(given.dtype), given):
            raise ValueError(f"contexts hold integers that {x.dtype} cannot hold: give numbers, or smaller integers")
        return x

    @contextmanager
    def fitting(self, x: Tensor) -> Iterator[None]:
        """Blame the shape or type of the contexts if the network fails on the first ones it gets."""
        try:
            yield
        except RuntimeError as error:
            if self.shape is not None or isinstance(error, torch.OutOfMemoryError):
                raise
            raise ValueError(
                f"the network does not take contexts of shape {tuple(x.shape)} and type {x.dtype}: {error}"
            ) from error

    def _type_for(self, given: Tensor) -> torch.dtype:
        number, integer = self.model.dtype, torch.int64
        if given.is_floating_point() or given.is_complex():
            return number
        if self._are_integers is None:
            as_number = self._refusal(given.to(number))
            as_integer = self._refusal(given.to(integer)) if as_number else None
            if as_integer:
                raise ValueError(
                    f"the network does not take contexts of shape {tuple(given.shape)}, "
                    f"neither as {number}: {as_number}; nor as {integer}: {as_integer}"
                )
            self._are_integers = as_number is not None
        return integer if self._are_integers else number

    @torch.no_grad()
    def _refusal(self, x: Tensor) -> Exception | None:
        """What the network says to contexts that it does not take."""
        try:
            self.model(x.to(self.model.device), member=0)
        except (torch.OutOfMemoryError, MemoryError):
            raise
        except Exception as error:  # networks check their inputs in many ways
            return error
        return None

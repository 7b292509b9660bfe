"""Counts floating-point operations with torch's own counter, without slowing training down."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch.utils.flop_counter import FlopCounterMode


class Meter:
    """Adds up operations; all steps of a training have the same shapes, so the first one is counted for all.

    torch counts the multiplications and additions of matrix products and convolutions, forward and backward;
    element-wise work (the Hadamard products of fast weights, norms) is not included.

    Examples:
        >>> import torch
        >>> meter = Meter()
        >>> with meter.counting():
        ...     _ = torch.ones(2, 3) @ torch.ones(3, 4)
        >>> meter.operations
        48
    """

    def __init__(self) -> None:
        self.operations: float = 0
        self.former_seconds = 0.0  # of trainings that earlier processes completed or began
        self.former_processor_seconds = 0.0
        self._per_step: float = 0
        self._next = -1  # the next step of the current training

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count everything inside the block."""
        with FlopCounterMode(display=False) as counter:
            yield
        self.operations += int(counter.get_total_flops())

    @contextmanager
    def around_step(self, step: int) -> Iterator[None]:
        """Count the first step of a training in this process, and assume the same for the others."""
        known, self._next = step == self._next, step + 1
        if known:
            self.operations += self._per_step
            yield
            return
        before = self.operations
        with self.counting():
            yield
        self._per_step = self.operations - before

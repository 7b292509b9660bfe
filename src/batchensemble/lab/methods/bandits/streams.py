"""Random numbers for many trials at once, each with its own generator."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


class Streams:
    """One generator per trial: what a trial draws does not depend on which others run beside it.

    Every method returns a tensor whose first axis is the trials.

    Args:
        seeds: one per trial.
        device: where the numbers are drawn and used.

    Examples:
        >>> alone, together = Streams([7]), Streams([3, 7])
        >>> bool((alone.normal(4)[0] == together.normal(4)[1]).all())
        True
    """

    def __init__(self, seeds: Sequence[int], device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        self._generators = [torch.Generator(self.device).manual_seed(seed) for seed in seeds]

    def __len__(self) -> int:
        return len(self._generators)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Draw numbers in `[low, high)`, `(trials, *shape)`."""
        return self._fill(shape, torch.float32, lambda part, g: part.uniform_(low, high, generator=g))

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw standard normal numbers, `(trials, *shape)`."""
        return self._fill(shape, dtype, lambda part, g: part.normal_(generator=g))

    def integers(self, below: int, *shape: int) -> Tensor:
        """Draw integers in `[0, below)`, `(trials, *shape)`."""
        return self._fill(shape, torch.int64, lambda part, g: part.random_(0, below, generator=g))

    def coins(self, probability: float, *shape: int) -> Tensor:
        """Draw ones with this probability, else zeros, `(trials, *shape)`."""
        return self._fill(shape, torch.float32, lambda part, g: part.bernoulli_(probability, generator=g))

    def gamma(self, concentration: Tensor) -> Tensor:
        """Draw a gamma number of unit rate for each shape parameter in `(trials, ...)`."""
        # torch.distributions uses the same function, but takes no generator
        parts = iter(concentration)
        return self.each(lambda g: torch._standard_gamma(next(parts), generator=g))

    def each(self, draw: Callable[[torch.Generator], Tensor]) -> Tensor:
        """Call `draw` with every trial's generator and stack the results, trials first."""
        return torch.stack([draw(generator) for generator in self._generators])

    def _fill(
        self, shape: tuple[int, ...], dtype: torch.dtype, draw: Callable[[Tensor, torch.Generator], Tensor]
    ) -> Tensor:
        numbers = torch.empty(len(self), *shape, dtype=dtype, device=self.device)
        for part, generator in zip(numbers.view(len(self), -1), self._generators, strict=True):
            draw(part, generator)
        return numbers

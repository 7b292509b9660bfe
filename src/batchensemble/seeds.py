"""Seeds that follow from names and numbers, so that no random state has to be stored."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def seed_of(*parts: int | str) -> int:
    """One seed from several numbers and words, e.g. a training's seed and an epoch; similar ones give unrelated seeds.

    Examples:
        >>> seed_of(0, 1) == seed_of(0, 1), seed_of(0, 1) == seed_of(1, 0)
        (True, False)
        >>> seed_of(0, "training", 1) == seed_of(0, "decision", 1)
        False
    """
    # torch accepts negative seeds, too.
    numbers = [int.from_bytes(part.encode(), "little") if isinstance(part, str) else part % 2**64 for part in parts]
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed torch's own randomness on the CPU and on a GPU; the user's random numbers go on as if nothing had happened.

    Examples:
        >>> before = torch.get_rng_state()
        >>> with seeded(3):
        ...     one = torch.rand(2)
        >>> with seeded(3):
        ...     print(torch.equal(torch.rand(2), one))
        True
        >>> torch.equal(torch.get_rng_state(), before)
        True
    """
    device = torch.device(device)
    gpus = [] if device.type != "cuda" else [torch.cuda.current_device() if device.index is None else device.index]
    with torch.random.fork_rng(gpus):
        torch.default_generator.manual_seed(seed)
        for gpu in gpus:
            torch.cuda.default_generators[gpu].manual_seed(seed)
        yield

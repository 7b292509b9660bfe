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
def seeded(seed: int, *devices: torch.device | str) -> Iterator[None]:
    """Seed torch's own randomness on the CPU and on GPUs; the user's random numbers go on as if nothing had happened.

    Other GPUs are left alone. An accelerator of another kind is seeded, but its numbers do not go on as before.

    Args:
        seed: the seed.
        devices: where numbers are drawn, apart from the CPU.

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
    found = {torch.device(device) for device in devices}
    indices = {device.index for device in found if device.type == "cuda"}
    gpus = sorted({torch.cuda.current_device() if index is None else index for index in indices})
    with torch.random.fork_rng(gpus):
        if {device.type for device in found} <= {"cpu", "cuda", "meta"}:
            torch.default_generator.manual_seed(seed)
            for gpu in gpus:
                torch.cuda.default_generators[gpu].manual_seed(seed)
        else:
            torch.manual_seed(seed)  # only torch knows how each kind is seeded
        yield

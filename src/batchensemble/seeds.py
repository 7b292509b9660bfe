"""Seeds that follow from names and numbers, so that no random state has to be stored."""

import numpy as np


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

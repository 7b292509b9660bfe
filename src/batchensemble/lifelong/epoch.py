"""What happened in one pass over the data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Epoch:
    """What happened in one pass, measured while training.

    Attributes:
        names: the tasks that train.
        epoch: counted from 1.
        epochs: how many there will be.
        loss: mean loss.
        accuracy: share of rows classified right while training.
        seconds: how long it took.
    """

    names: tuple[str, ...]
    epoch: int
    epochs: int
    loss: float
    accuracy: float
    seconds: float

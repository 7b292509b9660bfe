"""Thompson sampling with members: decide now, learn when the reward comes, survive a restart."""

from batchensemble.bandits.learning import Training
from batchensemble.bandits.ledger import Decisions
from batchensemble.bandits.sampler import ThompsonSampler

__all__ = ["Decisions", "ThompsonSampler", "Training"]


def __dir__() -> list[str]:
    return __all__

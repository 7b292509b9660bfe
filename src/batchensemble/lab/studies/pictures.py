"""Which test pictures are worth looking at."""

import torch
from torch import Tensor

from batchensemble import Prediction

DRAWN = 12
TELLING = 8


def choose_pictures(
    ours: Prediction, alone: Prediction, labels: Tensor, seed: int, drawn: int = DRAWN, telling: int = TELLING
) -> Tensor:
    """Rows of pictures: `drawn` by seed alone, then up to `telling` where one network is sure and wrong.

    Of the latter the ensemble is right about every one; those of which the network is surest come first.

    Examples:
        >>> ours = Prediction(torch.tensor([[[9.0, 0.0], [0.0, 9.0], [0.0, 9.0]]]))
        >>> alone = Prediction(torch.tensor([[[9.0, 0.0], [9.0, 0.0], [5.0, 0.0]]]))
        >>> choose_pictures(ours, alone, torch.tensor([0, 1, 1]), seed=0, drawn=0)
        tensor([1, 2])
    """
    by_seed = torch.randperm(len(ours), generator=torch.Generator().manual_seed(seed))[:drawn]
    tells = (ours.label == labels) & (alone.label != labels)
    surest = torch.where(tells, alone.confidence, -1.0).argsort(descending=True)
    return torch.cat([by_seed, surest[: min(telling, int(tells.sum()))]])

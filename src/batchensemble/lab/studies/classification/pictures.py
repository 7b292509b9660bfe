"""Selects the test images to show in figures."""

import torch
from torch import Tensor

from batchensemble import Prediction

DRAWN = 12  # images drawn at random
TELLING = 8  # most images that only the ensemble gets right


def choose_pictures(ensemble: Prediction, alone: Prediction, labels: Tensor, seed: int) -> Tensor:
    """Rows of images: some drawn at random by seed, then some that only the ensemble gets right.

    The latter are those that one network gets wrong, in descending order of its confidence.

    Examples:
        >>> ensemble = Prediction(torch.tensor([[[9.0, 0.0], [0.0, 9.0], [0.0, 9.0]]]))
        >>> alone = Prediction(torch.tensor([[[9.0, 0.0], [9.0, 0.0], [5.0, 0.0]]]))
        >>> choose_pictures(ensemble, alone, torch.tensor([0, 1, 1]), seed=0)[3:]
        tensor([1, 2])
    """
    by_seed = torch.randperm(len(ensemble), generator=torch.Generator().manual_seed(seed))[:DRAWN]
    tells = (ensemble.label == labels) & (alone.label != labels)
    surest = torch.where(tells, alone.confidence, -1.0).argsort(descending=True)
    return torch.cat([by_seed, surest[: min(TELLING, int(tells.sum()))]])

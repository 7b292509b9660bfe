import math

import torch

from batchensemble import Prediction
from batchensemble.lab.studies.scores import diversity


def test_divergences_of_members_that_are_very_sure_are_finite():
    outputs = torch.tensor([[[0.0, 200.0]], [[0.0, -200.0]]])  # e^-200 is no float32
    found = diversity(Prediction(outputs), torch.tensor([1]))
    assert math.isclose(found["pairwise_kl"], 200.0)
    torch.testing.assert_close(found["base_kl"], torch.tensor([0.0, 200.0], dtype=torch.float64))

import math

import torch

from batchensemble import Prediction
from batchensemble.lab.studies.scores import detection, diversity


def test_divergences_of_members_that_are_very_sure_are_finite():
    outputs = torch.tensor([[[0.0, 200.0]], [[0.0, -200.0]]])  # e^-200 is no float32
    found = diversity(Prediction(outputs), torch.tensor([1]))
    assert math.isclose(found["pairwise_kl"], 200.0)
    torch.testing.assert_close(found["base_kl"], torch.tensor([0.0, 200.0], dtype=torch.float64))


def test_members_that_differ_only_about_the_unseen_have_information_only_there():
    agree = torch.tensor([[[0.0, 3.0]], [[0.0, 3.0]]], dtype=torch.float64)
    differ = torch.tensor([[[9.0, -9.0]], [[-9.0, 9.0]]], dtype=torch.float64)
    found = detection(Prediction(agree), Prediction(differ))
    assert math.isclose(found["information_known"], 0.0, abs_tol=1e-12)
    sure = 1 / (1 + math.exp(-18))
    entropy = -(sure * math.log(sure) + (1 - sure) * math.log1p(-sure))
    assert math.isclose(found["information_unknown"], math.log(2) - entropy, rel_tol=1e-6)

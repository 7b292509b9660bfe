"""Where in a structured output the answer is."""

from typing import Any

import pytest
import torch
from structures import Box, Point
from torch import Tensor

from batchensemble.ensemble.answers import Field


@pytest.mark.parametrize(
    ("output", "name", "key"),
    [
        (torch.ones(1), None, None),
        (torch.ones(1), "logits", None),  # torchvision's Inception: fields in training, one tensor in evaluation
        ({"loss": torch.tensor(1.0), "logits": torch.ones(1)}, None, "logits"),
        ({"loss": torch.tensor(1.0), "scores": torch.ones(1)}, None, "scores"),
        ((None, torch.ones(1), torch.ones(2)), None, 1),
        ([torch.ones(1), torch.ones(2)], "1", 1),
        ([torch.ones(1), torch.ones(2)], 1, 1),
        (Point(torch.ones(1), "p"), None, "x"),
        (Box(torch.ones(1)), "inside", "inside"),
        ({"logits": torch.ones(1), "other": torch.ones(1)}, "other", "other"),
    ],
)
def test_the_field_that_is_combined(output: Any, name: str | int | None, key: Any) -> None:
    field = Field.find(output, name)
    assert field.key == key
    assert isinstance(field.get(output), Tensor)
    changed = field.put(output, torch.tensor(7.0))
    assert type(changed) is type(output)
    assert field.get(changed).item() == 7.0
    assert field.get(output).ndim == 1  # the old one is as it was


@pytest.mark.parametrize("name", ["missing", "note"])
def test_a_field_that_is_not_there_or_no_tensor(name: str) -> None:
    with pytest.raises(
        ValueError, match=f"output='{name}' is no tensor of the network's output; it has inside: Tensor"
    ):
        Field.find(Box(torch.ones(1)), name)

"""Nested structures keep their kind."""

from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field

import torch
from structures import Box, Point
from torch import Tensor
from transformers import BatchEncoding

from batchensemble.ensemble.answers import Field
from batchensemble.nn.trees import map_tensors, tensors


def test_every_tensor_of_a_tree() -> None:
    one = torch.ones(1)
    tree = {"a": [one, (one, "text")], "b": Point(one, "p"), "c": Box({"d": one}), "e": None, "f": OrderedDict(g=one)}
    doubled = map_tensors(lambda t: t * 2, tree)
    assert [t.item() for t in tensors(doubled)] == [2.0] * 5
    assert [t.item() for t in tensors(tree)] == [1.0] * 5
    assert type(doubled["b"]) is Point
    assert type(doubled["c"]) is Box
    assert type(doubled["f"]) is OrderedDict
    assert doubled["a"][1][1] == "text"
    assert doubled["e"] is None


def test_dicts_of_every_kind_keep_theirs() -> None:
    tree = defaultdict(list, {0: torch.ones(1), (1, 2): [torch.ones(1)]})
    for other in (map_tensors(lambda t: t * 2, tree), Field.find(tree, None).put(tree, torch.tensor([2.0]))):
        assert type(other) is defaultdict
        assert list(other) == [0, (1, 2)]
        assert other["new"] == []
        assert other[0] == 2
    assert tree[0] == 1


def test_what_a_tokenizer_returns_is_a_dict() -> None:
    tree = BatchEncoding({"input_ids": torch.ones(2, 3), "names": ["a", "b"]})
    doubled = map_tensors(lambda t: t * 2, tree)
    assert type(doubled) is BatchEncoding
    assert (doubled.input_ids == 2).all()
    assert doubled["names"] == ["a", "b"]
    assert (tree.input_ids == 1).all()


@dataclass
class Labelled:
    logits: Tensor
    label: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.label = self.logits.argmax(-1)


def test_fields_that_a_constructor_makes_are_those_of_the_tree() -> None:
    given = Labelled(torch.eye(2))
    given.label = torch.tensor([5, 6])
    assert map_tensors(lambda tensor: tensor + 1, given).label.tolist() == [6, 7]
    assert Field("logits").put(given, torch.zeros(2, 2)).label.tolist() == [5, 6]

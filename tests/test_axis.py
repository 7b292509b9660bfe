"""The member axis at the edges: which tensors carry rows, and on which axis."""

import inspect
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from batchensemble.axis import Edge, Field, map_tensors, tensors, with_member

M, N = 3, 4


class Point(NamedTuple):
    x: Tensor
    name: str


@dataclass
class Box:
    inside: Any
    note: str = ""


def edge(axis: int = 0, shared: tuple[str, ...] = ()) -> Edge:
    return Edge.of(inspect.signature(lambda x, mask=None, **more: x), axis, shared)


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


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x, "(x, *, member=None)"),
        (lambda *xs: xs, "(*xs, member=None)"),
        (lambda x, *, y=1: x, "(x, *, y=1, member=None)"),
        (lambda **more: more, "(*, member=None, **more)"),
        (lambda: 0, "(*, member=None)"),
    ],
)
def test_signatures(function: Any, expected: str) -> None:
    assert str(with_member(inspect.signature(function))) == expected


def test_rows_are_those_of_the_first_tensor_that_is_not_shared() -> None:
    x, mask = torch.ones(N, 5), torch.ones(5, 5)
    assert edge().rows((x, mask), {})[0] == N
    assert edge().rows((mask,), {"x": x})[0] == 5
    assert edge(shared=("x",)).rows((mask, x), {})[0] == N
    assert edge().rows((torch.tensor(1.0), x), {})[0] == N
    assert edge(axis=1).rows((torch.ones(3), x), {})[0] == 5
    assert edge().rows((), {"other": [x]})[0] == N
    assert edge().rows((), {"mask": mask, "x": x})[0] == N  # in the signature's order, not the caller's


def repeated(edge: Edge, *args: Tensor, **kwargs: Any) -> Any:
    return edge.repeat(M, edge.carriers(args, kwargs), args, kwargs)


def test_arguments_by_keyword_alone_come_in_the_signatures_order() -> None:
    def forward(first: Tensor, *others: Tensor, x: Tensor, table: Tensor) -> None: ...

    both = {"table": torch.ones(2, 5), "x": torch.ones(N, 2)}
    one = Edge.of(inspect.signature(forward), 0, ("first",))
    assert one.rows((torch.ones(7),), both) == (N, torch.device("cpu"))
    assert [name for name, _ in one.named([1, 2, 3])] == ["first", "", ""]


def test_repeat_is_member_major_and_leaves_others_alone() -> None:
    x, mask = torch.arange(N), torch.ones(5, 5)
    (ours, shared), named = repeated(edge(), x, mask, also={"x": x, "n": 3})
    assert torch.equal(ours, x.repeat(M))
    assert shared is mask
    assert torch.equal(named["also"]["x"], ours)
    assert named["also"]["n"] == 3


def test_vectors_have_rows_on_their_only_axis() -> None:
    lengths, others = torch.arange(N), torch.arange(5)
    (_, ours, table, number), _ = repeated(edge(axis=1), torch.ones(5, N, 2), lengths, others, torch.tensor(N))
    assert torch.equal(ours, lengths.repeat(M))
    assert table is others
    assert number.ndim == 0
    assert torch.equal(edge(axis=1).part(lengths, 1, 2), torch.tensor([1, 2]))


def test_shared_inputs_are_left_even_with_the_batchs_size() -> None:
    square = torch.ones(N, N)
    args, _ = repeated(edge(shared=("mask",)), torch.ones(N), square)
    assert args[1] is square
    _, kwargs = repeated(edge(shared=("mask",)), torch.ones(N), mask=square)
    assert kwargs["mask"] is square


@pytest.mark.parametrize("count", [6, torch.tensor(6), torch.tensor([6])])
def test_a_count_of_labels_grows_with_the_copies(count: Any) -> None:
    _, kwargs = repeated(edge(), torch.ones(1), num_items_in_batch=count)
    assert kwargs["num_items_in_batch"] == 6 * M
    assert count == 6
    assert repeated(edge(), torch.ones(1), num_items_in_batch=None)[1] == {"num_items_in_batch": None}


def test_what_carries_rows_in_a_batch_does_so_in_its_parts() -> None:
    tree = {"x": torch.ones(N, 2), "table": torch.ones(2, 5)}
    whole = edge()
    carriers = whole.carriers((tree,), {"mask": torch.ones(2), "also": torch.ones(N)})
    assert carriers == (True, False, False, True)
    part = {"x": torch.ones(2, 2), "table": torch.ones(2, 5)}
    (ours,), named = whole.repeat(M, carriers, (part,), {"mask": torch.ones(2), "also": torch.ones(2)})
    assert [len(t) for t in tensors((ours, named))] == [2 * M, 2, 2, 2 * M]


def test_repeat_keeps_channels_last() -> None:
    x = torch.ones(N, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    (ours,), _ = repeated(edge(), x)
    assert ours.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((M * N, 5), (M, N, 5)),
        ((2, M * N, 5), (M, 2, N, 5)),  # an LSTM's h_n
        ((2 * M * N, 5), (M, 2 * N, 5)),  # beams
        ((), ()),
        ((5, 7), (5, 7)),
        ((M * N, M * N), (M, N, M * N)),  # the batch axis comes first
    ],
)
def test_unfold(shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert edge().unfold(torch.zeros(shape), M, N).shape == expected


def test_unfold_finds_the_values() -> None:
    x = torch.arange(2 * M * N).reshape(2, M * N)
    assert torch.equal(edge().unfold(x, M, N)[1], x[:, N : 2 * N])
    assert torch.equal(edge(axis=1).unfold(x, M, N)[2], x[:, 2 * N :])
    assert torch.equal(edge().unfold(x.T, M, N, keep=2)[1], x.T[N : N + 2])


def test_a_trunk_answers_for_every_member() -> None:
    x = torch.arange(2 * N).reshape(N, 2)
    assert torch.equal(edge().unfold(x, M, N, trunk=True), torch.stack([x] * M))
    assert torch.equal(edge().unfold(x, M, N, keep=1, trunk=True), torch.stack([x[:1]] * M))
    assert edge().unfold(x, M, N) is x


def test_of_two_axes_with_the_rows_the_first_is_taken() -> None:
    """As many hidden units as rows: an LSTM's h_n has the rows on axis 1."""
    x = torch.randn(2, M * N, M * N)
    assert torch.equal(edge().unfold(x, M, N), x.unflatten(1, (M, N)).movedim(1, 0))


@pytest.mark.parametrize(
    ("output", "name", "key"),
    [
        (torch.ones(1), None, None),
        ({"loss": torch.tensor(1.0), "logits": torch.ones(1)}, None, "logits"),
        ({"loss": torch.tensor(1.0), "scores": torch.ones(1)}, None, "scores"),
        ((None, torch.ones(1), torch.ones(2)), None, 1),
        ([torch.ones(1), torch.ones(2)], "1", 1),
        (Point(torch.ones(1), "p"), None, "x"),
        (Box(torch.ones(1)), "inside", "inside"),
        ({"logits": torch.ones(1), "other": torch.ones(1)}, "other", "other"),
    ],
)
def test_the_field_that_is_combined(output: Any, name: str | None, key: Any) -> None:
    field = Field.find(output, name)
    assert field.key == key
    assert isinstance(field.get(output), Tensor)
    changed = field.put(output, torch.tensor(7.0))
    assert type(changed) is type(output)
    assert field.get(changed).item() == 7.0
    assert field.get(output).ndim == 1  # the old one is as it was


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


def test_an_output_without_anything_in_it_stays() -> None:
    assert Edge(0, ("x",), (), 1).unfold(torch.ones(0, 3), members=2, rows=4).shape == (0, 3)


@pytest.mark.parametrize("name", ["missing", "note"])
def test_a_field_that_is_not_there_or_no_tensor(name: str) -> None:
    with pytest.raises(
        ValueError, match=f"output='{name}' is no tensor of the network's output; it has inside: Tensor"
    ):
        Field.find(Box(torch.ones(1)), name)

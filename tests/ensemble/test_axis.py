"""The member axis at the edges: which tensors carry rows, and on which axis."""

import inspect
from typing import Any

import pytest
import torch
from torch import Tensor

from batchensemble.ensemble.axis import Edge
from batchensemble.nn.trees import tensors

M, N = 3, 4


def edge(axis: int = 0, shared: tuple[str, ...] = ()) -> Edge:
    return Edge.of(inspect.signature(lambda x, mask=None, **more: x), axis, shared)


def test_rows_are_those_of_the_first_tensor_that_is_not_shared() -> None:
    x, mask = torch.ones(N, 5), torch.ones(5, 5)
    assert edge().rows((x, mask), {}) == N
    assert edge().rows((mask,), {"x": x}) == 5
    assert edge(shared=("x",)).rows((mask, x), {}) == N
    assert edge().rows((torch.tensor(1.0), x), {}) == N
    assert edge(axis=1).rows((torch.ones(3), x), {}) == 5
    assert edge().rows((), {"other": [x]}) == N
    assert edge().rows((), {"mask": mask, "x": x}) == N  # in the signature's order, not the caller's


def repeated(edge: Edge, *args: Tensor, **kwargs: Any) -> Any:
    return edge.repeat(edge.given(args, kwargs), M)[:2]


def test_arguments_by_keyword_alone_come_in_the_signatures_order() -> None:
    def forward(first: Tensor, *others: Tensor, x: Tensor, table: Tensor) -> None: ...

    both = {"table": torch.ones(2, 5), "x": torch.ones(N, 2)}
    one = Edge.of(inspect.signature(forward), 0, ("first",))
    assert one.rows((torch.ones(7),), both) == N
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
    time_first = edge(axis=1).given((torch.ones(5, N, 2), lengths), {})
    assert torch.equal(edge(axis=1).part(time_first, 1, 2).args[1], torch.tensor([1, 2]))


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
    whole = edge().given((tree,), {"mask": torch.ones(2), "also": torch.ones(N)})
    assert whole.carriers == (True, False, False, True)
    part = edge().part(whole, 1, 2)
    assert [len(t) for t in tensors(part)] == [2, 2, 2, 2]
    assert [len(t) for t in tensors(edge().repeat(part, M))] == [2 * M, 2, 2, 2 * M]


def test_repeat_keeps_channels_last() -> None:
    x = torch.ones(N, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    (ours,), _ = repeated(edge(), x)
    assert ours.is_contiguous(memory_format=torch.channels_last)

"""Fast weights lined up with a batch: blocks, one member, ids; rows and features on any axes."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from batchensemble.nn.routing.rows import Rows

M, N, F = 3, 4, 5
SCALE = torch.arange(1.0, M * F + 1).reshape(M, F)
SHIFT = -SCALE
IDS = torch.tensor([1, 0, 2, 1])


def written_out(x: torch.Tensor, ids: torch.Tensor, axis: int, at: int) -> torch.Tensor:
    rows = x.movedim((axis, at), (0, -1))
    rows = torch.stack([row * SCALE[i] + SHIFT[i] for row, i in zip(rows, ids.tolist(), strict=True)])
    return rows.movedim((0, -1), (axis, at))


@pytest.mark.parametrize(("axis", "at"), [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)])
@pytest.mark.parametrize("owner", [None, 2, IDS], ids=["blocks", "one member", "ids"])
def test_affine(owner, axis: int, at: int) -> None:
    rows = M * N if owner is None else N
    shape = [2, 2, 2, 2]
    shape[axis], shape[at] = rows, F
    x = torch.randn(shape)
    if owner is None:
        ids = torch.arange(M).repeat_interleave(N)
    else:
        ids = owner if isinstance(owner, torch.Tensor) else torch.full((N,), owner)
    expected = written_out(x, ids, axis, at)
    torch.testing.assert_close(Rows(M, owner, axis).affine(x, SCALE, SHIFT, at=at), expected)
    torch.testing.assert_close(
        Rows(M, owner, axis).affine(x, SCALE, at=at) + 0, expected - written_shift(x, ids, axis, at)
    )


def written_shift(x: torch.Tensor, ids: torch.Tensor, axis: int, at: int) -> torch.Tensor:
    return Rows(M, ids, axis).affine(torch.zeros_like(x), shift=SHIFT, at=at)


def test_without_scale_and_shift_nothing_happens() -> None:
    x = torch.ones(M, F)
    assert Rows(M, None).affine(x, at=1) is x


def test_several_feature_axes() -> None:
    x, scale = torch.randn(M * N, 2, 3, 5), torch.randn(M, 3, 5)
    expected = x * scale.repeat_interleave(N, 0)[:, None]
    torch.testing.assert_close(Rows(M, None).affine(x, scale, at=2), expected)


@pytest.mark.parametrize("owner", [None, IDS], ids=["blocks", "ids"])
def test_features_must_lie_behind_the_rows(owner) -> None:
    with pytest.raises(ValueError, match="members need a batch"):
        Rows(M, owner).affine(torch.ones(M * 2), SCALE, at=0)


def test_features_of_one_member_may_come_without_rows() -> None:
    x = torch.randn(F)
    torch.testing.assert_close(Rows(M, 1).affine(x, SCALE, SHIFT, at=0), x * SCALE[1] + SHIFT[1])


def test_split_and_join_are_inverses() -> None:
    for axis in (0, 1):
        x, rows = torch.randn(M * N, M * N), Rows(M, None, axis)
        assert rows.split(x).shape[axis : axis + 2] == (M, N)
        assert torch.equal(rows.join(rows.split(x)), x)


@pytest.mark.parametrize("owner", [None, 1, IDS], ids=["blocks", "one member", "ids"])
def test_a_partition_holds_every_row_once(owner) -> None:
    count = M * 2 if owner is None else N
    places = torch.arange(count)
    parts = Rows(M, owner).partition(count)
    assert sorted(torch.cat([places[mine] for _, mine in parts]).tolist()) == places.tolist()
    whose = {i: places[mine].tolist() for i, mine in parts}
    assert whose == {None: {0: [0, 1], 1: [2, 3], 2: [4, 5]}, 1: {1: [0, 1, 2, 3]}}.get(
        owner if not isinstance(owner, torch.Tensor) else "ids", {0: [1], 1: [0, 3], 2: [2]}
    )


def test_a_partition_leaves_out_members_without_rows() -> None:
    assert [i for i, _ in Rows(M, torch.tensor([2, 0, 2])).partition(3)] == [0, 2]


class Counting(TorchDispatchMode):
    """Counts torch's operations."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


def test_a_partition_takes_as_many_operations_for_many_members_as_for_few() -> None:
    counts = []
    for members in (2, 100):
        ids = torch.arange(2 * members) % members
        with Counting() as counting:
            parts = Rows(members, ids).partition(len(ids))
        assert [(i, mine.tolist()) for i, mine in parts] == [(i, [i, i + members]) for i in range(members)]
        counts.append(counting.count)
    assert counts[0] == counts[1]


def test_gradients_of_repeated_rows_are_summed_in_the_precision_of_the_fast_weights() -> None:
    fast, x = torch.ones(M, F, requires_grad=True), torch.ones(M * 1001, F, dtype=torch.bfloat16)
    Rows(M, None).repeated(fast, x, at=1).float().sum().backward()
    assert bool((fast.grad == 1001).all())  # bfloat16 has no such number


def test_channels_last_stays_channels_last() -> None:
    x = torch.randn(M * N, F, 3, 3).contiguous(memory_format=torch.channels_last)
    for owner in (None, 1, IDS.repeat(M)):
        y = Rows(M, owner).affine(x, SCALE, SHIFT, at=1)
        assert y.is_contiguous(memory_format=torch.channels_last)

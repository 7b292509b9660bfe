"""Member ids: any integer type, and a clear error for everything else."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode

import batchensemble as be
from batchensemble.nn.routing import ids as checking
from batchensemble.nn.routing.ids import checked_owner

M, N = 300, 5
CPU = torch.device("cpu")
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_ids_of_any_integer_type(dtype: torch.dtype) -> None:
    ids = torch.tensor([2, 0, 1, 1, 2])
    model, x = be.convert(nn.Linear(4, 2), members=M).eval(), torch.randn(N, 4)
    torch.testing.assert_close(model(x, member=ids.to(dtype)), model(x, member=ids))


@pytest.mark.parametrize("member", [1, np.int64(1), torch.tensor([1] * N)[0].item()])
def test_one_member_for_every_row(member) -> None:
    assert checked_owner(member, N, M, CPU) == 1


@pytest.mark.parametrize("bad", [-1, M, 10**9])
def test_an_id_outside_is_named(bad: int) -> None:
    with pytest.raises(IndexError, match=rf"\[0, {M}\), got {bad}"):
        checked_owner(bad, N, M, CPU)
    with pytest.raises(IndexError, match=rf"\[0, {M}\), got {bad}"):
        checked_owner(torch.tensor([0, 1, bad, 0, 0]), N, M, CPU)


@pytest.mark.parametrize("ids", [torch.zeros(N - 1).long(), torch.zeros(N, 1).long(), torch.tensor(1)])
def test_ids_must_be_one_for_each_row(ids: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=f"each of the {N} rows"):
        checked_owner(ids, N, M, CPU)


@pytest.mark.parametrize("ids", [torch.zeros(N), torch.zeros(N).bool(), torch.zeros(N).cfloat(), 1.0, "1", [0] * N])
def test_ids_must_be_integers(ids) -> None:
    with pytest.raises(TypeError, match=r"member.* must be"):
        checked_owner(ids, N, M, CPU)


def test_ids_are_a_copy() -> None:
    ids = torch.zeros(N, dtype=torch.long)
    assert checked_owner(ids, N, M, CPU).data_ptr() != ids.data_ptr()


def faked(check: Any, ids: Tensor) -> Tensor:
    with FakeTensorMode() as mode:
        return check(mode.from_tensor(ids))


TRACERS: dict[str, Callable[[Any, Tensor], Any]] = {
    "compile": lambda check, ids: torch.compile(check, backend="eager", fullgraph=True)(ids),
    "jit trace": lambda check, ids: torch.jit.trace(check, ids),
    "vmap": lambda check, ids: torch.vmap(check)(torch.stack([ids, ids])),
    "fake": faked,
    "meta": lambda check, ids: check(ids.to("meta")),
}


@pytest.mark.filterwarnings("ignore:.torch.jit.trace", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("tracer", [*TRACERS, None])
def test_only_what_is_traced_needs_the_operator(tracer: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    used, ids = [], torch.zeros(N, dtype=torch.long)

    def operator(ids: Tensor, members: int) -> Tensor:
        used.append(members)
        return ids.clone()

    monkeypatch.setattr(checking, "_in_a_graph", operator)

    def check(ids: Tensor) -> Any:
        return checked_owner(ids, N, M, ids.device)

    if tracer is None:
        check(ids)
    else:
        TRACERS[tracer](check, ids)
    assert bool(used) == (tracer is not None)

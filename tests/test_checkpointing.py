"""Gradient checkpointing: what is recomputed has to know its members again."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from ensembles import IDS, M, N, ensemble, randomise, rows
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import batchensemble as be

close = partial(torch.testing.assert_close, rtol=1e-3, atol=1e-4)


class Checkpointed(nn.Module):
    """Recomputes its middle in the backward pass, in the way it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.middle, self.head = nn.Linear(4, 6), nn.Sequential(nn.Linear(6, 6), nn.ReLU()), nn.Linear(6, 3)
        self.how: dict[str, Any] | None = None

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        x = self.middle(x) if self.how is None else checkpoint(self.middle, x, **self.how)
        return self.head(x)


def gradients(
    model: nn.Module, how: dict[str, Any] | None, call: Callable[[nn.Module, Tensor], Tensor]
) -> list[Tensor]:
    model.net.how = how
    model.zero_grad()
    call(model, rows()).square().sum().backward()
    return [p.grad.clone() for p in model.parameters()]


CALLS: dict[str, Callable[[nn.Module, Tensor], Tensor]] = {
    "dealt": lambda model, x: model(x),
    "ids": lambda model, x: model(x, member=IDS),
    "one member": lambda model, x: model(x, member=2),
    "members": lambda model, x: model.members(x),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@every_call
@pytest.mark.parametrize("fan_out", [None, "middle", "middle.0", "head"])
def test_checkpointing_with_the_route_carried(call: Any, fan_out: str | None) -> None:
    model = ensemble(Checkpointed(), fan_out=fan_out).train()
    how = {"use_reentrant": False, "context_fn": be.nn.carry_route}
    for ours, expected in zip(gradients(model, how, call), gradients(model, None, call), strict=True):
        close(ours, expected)


@every_call
def test_a_checkpoint_may_be_gone_through_backwards_several_times(call: Any) -> None:
    """For a penalty on gradients, and for several losses of one pass."""
    model, found = ensemble(Checkpointed()).train(), []
    for how in ({"use_reentrant": False, "context_fn": be.nn.carry_route}, None):
        model.net.how = how
        model.zero_grad()
        x = rows().requires_grad_()
        y = call(model, x).square().sum()
        (slope,) = torch.autograd.grad(y, x, create_graph=True)
        slope.square().sum().backward(retain_graph=True)
        y.backward()
        found.append([x.grad, *(p.grad for p in model.parameters())])
    for ours, expected in zip(*found, strict=True):
        close(ours, expected)


@every_call
@pytest.mark.parametrize("how", [{"use_reentrant": False}, {"use_reentrant": True}], ids=str)
def test_checkpointing_without_the_route_is_refused(call: Any, how: dict[str, Any]) -> None:
    model = ensemble(Checkpointed()).train()
    with pytest.raises(RuntimeError, match=r"layer 'middle\.0'.*carry_route"):
        gradients(model, how, call)


@every_call
def test_checkpointing_a_part_that_is_plain_needs_nothing(call: Any) -> None:
    model = ensemble(Checkpointed(), exclude="middle").train()
    for how in ({"use_reentrant": False}, {"use_reentrant": True}):
        for ours, expected in zip(gradients(model, how, call), gradients(model, None, call), strict=True):
            close(ours, expected)


@pytest.mark.parametrize("how", ["carried", "not carried", "by the ensemble"])
def test_checkpointing_in_transformers(how: str) -> None:
    from zoo import ZOO

    case = ZOO["bert"]
    model = randomise(be.convert(case.make(), members=M)).train()
    _, inputs = case.inputs(N)
    plain = copy.deepcopy(model)
    more = {"context_fn": be.nn.carry_route} if how == "carried" else {}
    if how == "by the ensemble":  # as Trainer does
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=None)
    else:
        model.net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False, **more})
    plain(**inputs, member=IDS).logits.square().sum().backward()
    loss = model(**inputs, member=IDS).logits.square().sum()
    if how == "not carried":
        with pytest.raises(RuntimeError, match="carry_route"):
            loss.backward()
        return
    loss.backward()
    for ours, expected in zip(model.parameters(), plain.parameters(), strict=True):
        assert (ours.grad is None) == (expected.grad is None)
        if ours.grad is not None:
            close(ours.grad, expected.grad)

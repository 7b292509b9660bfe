"""An optimiser that was made before the members' parameters is noticed; nothing else is taken for it."""

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from ensembles import IDS, M, convnet, ensemble, images, mlp, rows
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounter

import batchensemble as be
from batchensemble.ensemble.stale import CALLS, STEPS

X, Y = rows(), IDS
WORDS = r"the optimiser trains what members share, and none of their own .* after convert, add_members and keep_members"


def sgd(model: nn.Module, **options: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01, **options)


def learn(model: Any, optimizer: torch.optim.Optimizer, steps: int = STEPS + 3, ask: Any = None, x: Tensor = X) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        answer = (ask or model)(x).flatten(0, -2)
        nn.functional.cross_entropy(answer, Y.repeat(len(answer) // len(Y))).backward()
        optimizer.step()


def quiet(model: Any) -> bool:
    """Whether nothing is being watched any more, and nothing held."""
    stale = model._watch._stale
    return stale._over and not stale._own and not stale._shared


# ---- what is noticed -------------------------------------------------------------------------------------------------


def added(model: Any) -> tuple[Any, torch.optim.Optimizer]:
    optimizer = sgd(model)
    learn(model, optimizer, 3)
    return model.add_members(2), optimizer


def kept(model: Any) -> tuple[Any, torch.optim.Optimizer]:
    optimizer = torch.optim.AdamW(model.parameters())
    learn(model, optimizer, 3)
    return model.keep_members([0, 2]), optimizer


def converted_in_place(_model: Any) -> tuple[Any, torch.optim.Optimizer]:
    net = mlp()
    optimizer = sgd(net, momentum=0.9)
    return be.convert(net, members=M, copy=False), optimizer


@pytest.mark.parametrize("begin", [added, kept, converted_in_place])
def test_an_optimizer_that_is_too_old_warns_once(begin: Callable[[Any], Any]) -> None:
    model, optimizer = begin(ensemble().train())
    own = model.net[0].r.clone()
    with pytest.warns(UserWarning, match=WORDS) as warned:
        learn(model.train(), optimizer)
    assert warned[0].filename == __file__
    assert len(warned) == 1
    assert torch.equal(own, model.net[0].r), "as the warning says"
    assert quiet(model)


@pytest.mark.parametrize("norm", ["shared", "member"])
@pytest.mark.parametrize("ask", ["members", "ids"])
def test_every_way_to_train_is_watched(ask: str, norm: str) -> None:
    model = ensemble(convnet(), norm=norm).train()
    optimizer = sgd(model)
    model.add_members(1)
    call = model.members if ask == "members" else lambda x: model(x, member=IDS)
    with pytest.warns(UserWarning, match=WORDS) as warned:
        learn(model, optimizer, ask=call, x=images())
    assert warned[0].filename == __file__


def test_members_that_come_later_are_watched_anew() -> None:
    model = ensemble().train()
    optimizer = sgd(model)
    learn(model, optimizer)
    assert quiet(model)
    with pytest.warns(UserWarning, match=WORDS):
        learn(model.add_members(1), optimizer)
    learn(model, sgd(model))


# ---- what is not -----------------------------------------------------------------------------------------------------


def as_usual(model: Any) -> None:
    learn(model, sgd(model))
    assert quiet(model)


def at_a_rate_of_zero(model: Any) -> None:
    learn(model, torch.optim.SGD(be.parameter_groups(model, 0.1, 1e-4, fast_lr_scale=0)))


def frozen_members(model: Any) -> None:
    for own in (model.net[0], model.net[2]):
        for name in own.stacked:
            getattr(own, name).requires_grad_(False)
    learn(model, sgd(model))
    assert quiet(model)


def frozen_after_a_first_gradient(model: Any) -> None:
    nn.functional.cross_entropy(model(X), Y).backward()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.endswith("weight"))
    learn(model, torch.optim.SGD([each for each in model.parameters() if each.requires_grad], lr=0.01))


def frozen_weights(model: Any) -> None:
    be.freeze_shared_(model)
    learn(model, sgd(model))
    assert quiet(model)


def accumulated(model: Any) -> None:
    for _ in range(2 * STEPS):
        nn.functional.cross_entropy(model(X), Y).backward()
    as_usual(model)


def fused(model: Any) -> None:
    """No version shows that members are trained, and W has an optimiser that shows it."""
    shared = [parameter for name, parameter in model.named_parameters() if name.endswith("weight")]
    own = [parameter for name, parameter in model.named_parameters() if not name.endswith("weight")]
    both = torch.optim.SGD(shared, lr=0.01), torch.optim.AdamW(own, fused=True)
    for _ in range(STEPS + 3):
        nn.functional.cross_entropy(model(X), Y).backward()
        for each in both:
            each.step()
            each.zero_grad()


def in_turns(model: Any) -> None:
    shared = [parameter for name, parameter in model.named_parameters() if name.endswith("weight")]
    learn(model, torch.optim.SGD(shared, lr=0.01), STEPS - 2)
    as_usual(model)


def other_layers(model: Any) -> None:
    """A plain layer behind the ensemble is trained, and no W."""
    head = nn.Linear(3, 3)
    learn(model, sgd(head), ask=lambda x: head(model(x)))


def copies(model: Any) -> None:
    learn(model, sgd(model), 1)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        learn(twin, sgd(twin))
        assert quiet(twin)


def averaged(model: Any) -> None:
    average, optimizer = torch.optim.swa_utils.AveragedModel(model), sgd(model)
    for _ in range(STEPS + 3):
        learn(model, optimizer, 1)
        average.update_parameters(model)
        average.module.train()(X)


def loaded(model: Any) -> None:
    optimizer = sgd(model)
    for _ in range(STEPS + 3):
        learn(model, optimizer, 1)
        model.load_state_dict(ensemble().state_dict())


def plain_weights_loaded(model: Any) -> None:
    plain = {name: tensor for name, tensor in mlp().state_dict().items() if "weight" in name}
    for _ in range(3):
        nn.functional.cross_entropy(model(X), Y).backward()
        model.net.load_state_dict(plain, strict=False)
    as_usual(model)


def evaluated(model: Any) -> None:
    optimizer = sgd(model)
    for _ in range(STEPS + 3):
        learn(model.train(), optimizer, 1)
        model.eval().predict(X)
        model.members(X)


def functional(model: Any) -> None:
    own = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for _ in range(STEPS + 3):
        found = torch.func.grad(lambda own: torch.func.functional_call(model, own, (X,)).sum())(own)
        own = {name: tensor - 0.01 * found[name] for name, tensor in own.items()}
    torch.func.vmap(lambda x: model(x, member=0))(X.unsqueeze(1))
    as_usual(model)


def without_gradients(model: Any) -> None:
    for _ in range(STEPS + 3):
        with torch.no_grad():
            model(X)
            model.net[0].weight.mul_(0.99)


def on_the_meta_device(model: Any) -> None:
    model.to("meta")
    for _ in range(3):
        model(X.to("meta")).sum().backward()


QUIET = [
    as_usual,
    at_a_rate_of_zero,
    frozen_members,
    frozen_after_a_first_gradient,
    frozen_weights,
    accumulated,
    fused,
    in_turns,
    other_layers,
    copies,
    averaged,
    loaded,
    plain_weights_loaded,
    evaluated,
    functional,
    without_gradients,
    on_the_meta_device,
]


@pytest.mark.parametrize("use", QUIET, ids=lambda use: use.__name__)
def test_nothing_else_is_taken_for_it(use: Callable[[Any], None]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        use(ensemble().train())


def test_a_compiled_graph_is_whole_and_made_once() -> None:
    model = ensemble().train()
    counter = CompileCounter()
    compiled = torch.compile(model, backend=counter, fullgraph=True)
    learn(model, sgd(model), ask=compiled)
    assert counter.frame_count == 1
    learn(model, sgd(model), 3)
    learn(model, sgd(model), 3, ask=compiled)
    assert counter.frame_count == 1, "nor again after calls that were not compiled"


def test_it_is_given_up_after_many_calls() -> None:
    model = ensemble().train()
    learn(model, torch.optim.AdamW(model.parameters(), fused=True), 3)
    assert not quiet(model)
    model._watch._stale._calls = CALLS
    model(X)
    assert quiet(model)

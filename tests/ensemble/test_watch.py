"""Training that would go wrong without an error is warned of, once; what only looks like it is not."""

import copy
import io
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from ensembles import IDS, M, ensemble, mlp, rows
from torch import Tensor, nn

import batchensemble as be

X, Y = rows(), IDS


def look(model: nn.Module, x: Tensor = X) -> None:
    """A gradient through the combined answer, as a saliency map of inner layers takes it."""
    model(x)[:, 0].sum().backward()


def step(model: nn.Module, answer: Tensor) -> None:
    nn.functional.cross_entropy(answer, Y[: len(answer)]).backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()


# ---- few rows --------------------------------------------------------------------------------------------------------


def test_few_rows_warn_once_for_each_model() -> None:
    model = ensemble().train()
    with pytest.warns(UserWarning, match="a batch of 2 rows for 3 members.*drop_last=True") as warned:
        model(rows(2))
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(rows(1))
        model(rows(3))
        model.eval()(rows(1))
        ensemble().train()(rows(2), member=0)
    with pytest.warns(UserWarning, match="a batch of 1 row for 3 members.*name it in shared_inputs"):
        ensemble().train()(rows(1))


# ---- training in evaluation mode -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda own: torch.optim.SGD(own, lr=0.1),
        lambda own: torch.optim.SGD(own, lr=0.1, momentum=0.9, foreach=True),
        lambda own: torch.optim.AdamW(own),
    ],
)
def test_training_in_evaluation_mode_warns_once(optimizer: Callable[..., torch.optim.Optimizer]) -> None:
    model = be.convert(mlp(), members=M, init="ones").eval()
    steps = optimizer(model.parameters())

    def train() -> None:
        steps.zero_grad()
        nn.functional.cross_entropy(model(X), Y).backward()
        steps.step()

    train()
    with pytest.warns(UserWarning, match=r"trained in evaluation mode.*Call model.train\(\)") as warned:
        nn.functional.cross_entropy(model(X), Y).backward()
    assert warned[0].filename == __file__
    train()
    train()


def test_gradients_that_are_accumulated_first_warn_as_well() -> None:
    model = ensemble()
    look(model)
    look(model)
    step(model, model(X))
    with pytest.warns(UserWarning, match="trained in evaluation mode"):
        model(X)


def test_a_prediction_in_between_hides_nothing() -> None:
    model = ensemble()
    step(model, model(X))
    model.predict(X)
    with torch.no_grad():
        model(X)
    with pytest.warns(UserWarning, match="trained in evaluation mode"):
        model(X)


def test_structured_outputs_are_watched_too() -> None:
    class Dict(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            return {"logits": self.layer(x)}

    model = ensemble(Dict())
    step(model, model(X)["logits"])
    with pytest.warns(UserWarning, match="trained in evaluation mode"):
        model(X)


def test_a_copy_is_watched_from_its_own_beginning() -> None:
    model = ensemble()
    look(model)
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        look(copied)
        step(copied, copied(X))
        with pytest.warns(UserWarning, match="trained in evaluation mode"):
            copied(X)


def without_no_grad(model: Any) -> None:
    model(X)
    step(model, model.train()(X))


def attack(model: Any) -> None:
    x = X.clone().requires_grad_()
    torch.autograd.grad(model.eval()(x).logsumexp(-1).sum(), x)
    step(model, model.train()((x + 0.1).detach()))


def attack_of_a_network_that_trains_in_evaluation_mode(model: Any) -> None:
    look(model, X.clone().requires_grad_())
    step(model, model.members(X).mean(0))


def attack_of_rows_with_members(model: Any) -> None:
    look(model, X.clone().requires_grad_())
    step(model, model(X, member=IDS))


def epoch_and_picture(model: Any) -> None:
    step(model, model.train()(X))
    look(model.eval())


def compiled_epoch_and_picture(model: Any) -> None:
    compiled = torch.compile(model, backend="eager")
    step(model, compiled.train()(X))
    look(model.eval())


def part_of_a_network(model: Any) -> None:
    whole = nn.Sequential(nn.Identity(), model)
    step(model, whole.train()(X))
    look(whole.eval())


def checkpoints_and_pictures(model: Any) -> None:
    look(model)
    model.load_state_dict(ensemble().state_dict())


def another_member_and_pictures(model: Any) -> None:
    look(model)
    model.add_members(1).keep_members([3, 0, 1])


def another_precision_and_pictures(model: Any) -> None:
    look(model)
    model.double().float()


def fisher(model: Any) -> None:
    for row in X:
        model.zero_grad()
        look(model, row[None])
    step(model, model.train()(X))
    model.eval()


def functional(model: Any) -> None:
    own = dict(model.named_parameters())
    found = torch.func.grad(lambda own: torch.func.functional_call(model, own, (X,)).sum())(own)
    with torch.no_grad():
        for name, parameter in own.items():
            parameter -= 0.1 * found[name]


def other_parts_train(model: Any) -> None:
    features = nn.Linear(4, 4)
    be.freeze_shared_(model)
    step(features, model(features(X)))


QUIET = [
    without_no_grad,
    attack,
    attack_of_a_network_that_trains_in_evaluation_mode,
    attack_of_rows_with_members,
    epoch_and_picture,
    compiled_epoch_and_picture,
    part_of_a_network,
    checkpoints_and_pictures,
    another_member_and_pictures,
    another_precision_and_pictures,
    fisher,
    functional,
    other_parts_train,
]


@pytest.mark.parametrize("use", QUIET, ids=lambda use: use.__name__)
def test_nothing_else_is_taken_for_it(use: Callable[[Any], None]) -> None:
    model = ensemble()
    for _ in range(3):
        use(model)
    model(X)


def test_one_member_has_nobody_to_be_like() -> None:
    model = ensemble(members=1)
    step(model, model(X))
    step(model, model(X))


def test_an_answer_can_be_stored() -> None:
    answer = ensemble()(X)
    assert answer.requires_grad
    torch.save(answer, io.BytesIO())


def test_a_rule_of_ones_own_may_return_anything() -> None:
    model = ensemble(combine=lambda outputs: (outputs.mean(0), outputs.std(0)))
    assert len(model(X)) == 2

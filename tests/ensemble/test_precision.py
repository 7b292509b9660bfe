"""Inputs of another precision than the weights: torch's error, and a note that says what to do."""

import pytest
import torch
from ensembles import M, convnet, ensemble, images, mlp, rows
from torch import Tensor, nn

from batchensemble.lifelong import Learner, Training

RECURRENT = nn.LSTM(4, 3, batch_first=True)


@pytest.mark.parametrize("given", [torch.float64, torch.float16], ids=str)
@pytest.mark.parametrize("member", [None, 1])
@pytest.mark.parametrize(
    ("net", "x"),
    [(mlp(), rows()), (convnet(), images()), (RECURRENT, rows()[:, None])],
    ids=["linear", "convolution", "lstm"],
)
def test_the_note_names_both_types(net: nn.Module, x: Tensor, member: int | None, given: torch.dtype) -> None:
    with pytest.raises((RuntimeError, ValueError)) as caught:
        ensemble(net)(x.to(given), member=member)
    (note,) = caught.value.__notes__
    assert note.startswith(f"the weights are torch.float32, and the network got an input of {given}")


def test_other_errors_have_no_such_note() -> None:
    with pytest.raises(RuntimeError, match="features") as caught:
        ensemble()(rows(width=5).double(), member=0)
    assert not hasattr(caught.value, "__notes__")
    with pytest.raises(RuntimeError, match="type") as caught:
        ensemble()(rows().long(), member=0)
    assert not hasattr(caught.value, "__notes__")


def test_a_network_that_casts_its_inputs_takes_any() -> None:
    class Casts(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x.float())

    model = ensemble(Casts(*mlp()))
    assert torch.equal(model.members(rows().double()), model.members(rows()))
    assert len(model.members(rows().half())) == M


def test_a_learner_says_it_too() -> None:
    torch.manual_seed(0)
    learner = Learner(mlp(outputs=6), head=6, training=Training(epochs=1, batch_size=4))
    x, y = rows(8), torch.arange(8) % 2
    for _ in range(2):
        with pytest.raises(RuntimeError, match="type") as caught:
            learner.learn((x.double(), y))
        assert "give it x.to(torch.float32)" in caught.value.__notes__[0]
        assert learner.tasks == ()
    learner.learn((x, y))
    with pytest.raises(RuntimeError, match="type") as caught:
        learner.predict(x.double(), task="0")
    assert "give it x.to(torch.float32)" in caught.value.__notes__[0]

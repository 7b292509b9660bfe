"""The loop: an epoch's randomness is its own, rates follow the schedule, a loss that is no number stops it."""

from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from batchensemble.checkpoint import load_checkpoint
from batchensemble.lifelong import Epoch, Training
from batchensemble.lifelong.checkpoint import Checkpoint
from batchensemble.lifelong.data import Batch, Part, Pool
from batchensemble.lifelong.loop import Loop
from batchensemble.optim import Diverged


def rows() -> Pool:
    x = torch.randn(32, 3, generator=torch.Generator().manual_seed(0))
    return Pool((Part.of("a", (x, (x[:, 0] > 0).long())),))


def loop(training: Training, layer: nn.Module, **more: object) -> Loop:
    def objective(batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        logits = layer(batch.x)
        return training.loss(logits, batch.y), logits

    groups = [{"params": list(layer.parameters()), "lr": training.lr, "weight_decay": 0.0}]
    return Loop(layer, objective, groups, rows(), training, **more)  # type: ignore[arg-type]


def layer() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Dropout(0.2), nn.Linear(3, 2))


def test_it_learns_and_tells_how_well() -> None:
    told: list[Epoch] = []
    history = loop(Training(epochs=12, batch_size=8, lr=0.3), layer(), progress=told.append).run()
    assert told == history
    assert [epoch.epoch for epoch in history] == list(range(1, 13))
    assert history[-1].loss < 0.5 * history[0].loss
    assert history[-1].accuracy > 0.85


def test_rates_follow_the_schedule_and_end_near_zero() -> None:
    seen: list[float] = []

    class Spy(torch.optim.SGD):
        def step(self, closure: object = None) -> None:
            seen.append(self.param_groups[0]["lr"])
            super().step()

    loop(Training(epochs=2, batch_size=8, lr=1.0, optimizer=Spy, schedule=lambda done: 1 - done), layer()).run()
    assert seen == pytest.approx([1 - step / 8 for step in range(8)])


def test_the_loop_leaves_the_callers_randomness_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    model = layer()
    torch.manual_seed(5)
    loop(Training(epochs=2, batch_size=8), model).run()
    assert torch.equal(torch.rand(3), expected)


def test_a_resumed_loop_ends_with_the_same_weights(tmp_path: Path) -> None:
    training, whole = Training(epochs=5, batch_size=8), layer()
    expected = loop(training, whole).run()

    def stop(epoch: Epoch) -> None:
        if epoch.epoch == 2:
            raise KeyboardInterrupt

    checkpoint = Checkpoint(tmp_path / "a" / "last.pt", {"what": "this"})
    with pytest.raises(KeyboardInterrupt):
        loop(training, layer(), checkpoint=checkpoint, progress=stop).run()
    resumed, told = layer(), []
    history = loop(training, resumed, checkpoint=checkpoint, progress=told.append).run()
    assert [epoch.epoch for epoch in told] == [3, 4, 5]
    assert [(e.loss, e.accuracy) for e in history] == [(e.loss, e.accuracy) for e in expected]
    for mine, theirs in zip(resumed.parameters(), whole.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    again = layer()
    assert loop(training, again, checkpoint=checkpoint).run() == history  # done: it is only read
    assert torch.equal(again[1].weight, whole[1].weight)


@pytest.mark.parametrize("other", [{"seed": 1}, {"epochs": 3}])
def test_a_checkpoint_of_other_settings_is_anothers(tmp_path: Path, other: dict[str, int]) -> None:
    checkpoint = Checkpoint(tmp_path / "last.pt", {"what": "this"})
    loop(Training(epochs=2, batch_size=8), layer(), checkpoint=checkpoint).run()
    training = Training(**{"epochs": 2, "batch_size": 8, **other})
    told: list[Epoch] = []
    with pytest.warns(UserWarning, match="another training with other settings, which is given up"):
        loop(training, layer(), checkpoint=checkpoint, progress=told.append).run()
    assert len(told) == training.epochs


def test_frozen_weights_are_neither_trained_nor_stored(tmp_path: Path) -> None:
    model = layer()
    model[1].weight.requires_grad_(False)
    before = model[1].weight.clone()
    loop(Training(epochs=1, batch_size=8), model, checkpoint=Checkpoint(tmp_path / "last.pt", {})).run()
    assert torch.equal(model[1].weight, before)
    assert list(torch.load(tmp_path / "last.pt", weights_only=True)["module"]) == ["1.bias"]


def test_a_loss_that_is_no_number_stops_it() -> None:
    with pytest.raises(Diverged, match="the loss of a is nan in epoch 1: try a lower learning rate"):
        loop(Training(epochs=2, batch_size=8, loss=lambda logits, y: logits.sum() * torch.nan), layer()).run()


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="epochs must be at least 0 and batch_size at least 1, got -1 and 8"):
        Training(epochs=-1, batch_size=8)


def test_after_a_step_something_may_be_done() -> None:
    model = layer()
    loop(Training(epochs=1, batch_size=8), model, after_step=lambda: model[1].bias.data.zero_()).run()
    assert model[1].bias.eq(0).all()


def test_an_epoch_is_told_before_its_checkpoint_and_after_it(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    checkpoint = Checkpoint(tmp_path / "last.pt", {})

    def tell(when: str, epoch: Epoch) -> None:
        saved = load_checkpoint(checkpoint.path)
        told.append((when, epoch.epoch, len(saved["epochs"]) if saved else 0))

    training = Training(epochs=2, batch_size=8, after_epoch=partial(tell, "before"))
    loop(training, layer(), checkpoint=checkpoint, progress=partial(tell, "after")).run()
    assert told == [("before", 1, 0), ("after", 1, 1), ("before", 2, 1), ("after", 2, 2)]


def test_autocast_multiplies_in_the_dtype_given() -> None:
    seen = []

    def loss(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        seen.append(logits.dtype)
        return nn.functional.cross_entropy(logits, y)

    loop(Training(epochs=1, batch_size=8, autocast=torch.bfloat16, loss=loss), layer()).run()
    assert set(seen) == {torch.bfloat16}

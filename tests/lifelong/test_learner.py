"""The promise: what was learned stays, bit for bit; and everything a user does with a learner."""

import copy
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from batchensemble.lifelong import Learner, StalledTask, Training

QUICK = Training(epochs=1, batch_size=8, lr=0.05)


def images(seed: int, rows: int = 16, classes: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 2, 6, 6, generator=generator)
    return x, torch.arange(rows) % classes


def backbone() -> nn.Module:
    """Everything that could move behind a learner's back: statistics, dropout, biases, an affine."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Conv2d(4, 6, 3, bias=False),
        nn.BatchNorm2d(6, momentum=None),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24, 5),
    )


def separable(shift: int = 0, rows: int = 96) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows whose class is the sign of one input."""
    x = torch.randn(rows, 4, generator=torch.Generator().manual_seed(shift))
    return x, (x[:, shift % 4] > 0).long()


def dense() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 16), nn.ReLU())


@pytest.mark.parametrize(("norm", "rank"), [("statistics", 1), ("shared", 1), ("member", 2)])
def test_a_hundred_later_tasks_leave_the_first_as_it_was_bit_for_bit(norm: str, rank: int) -> None:
    learner = Learner(backbone(), head=5, norm=norm, rank=rank, training=QUICK)
    learner.learn(images(0), "first")
    learner.learn(images(1), "second")
    x, _ = images(2, rows=7)
    mixed = ["first", "second", "first", "first", "second", "first", "second"]
    before = [learner(x, "first"), learner(x, "second"), learner(x, mixed)]
    state = copy.deepcopy(learner.network.state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StalledTask)
        for seed in range(100):
            learner.learn(images(seed), training=QUICK)
    after = [learner(x, "first"), learner(x, "second"), learner(x, mixed)]
    assert len(learner.tasks) == 102
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    now = learner.network.state_dict()
    for name, tensor in state.items():  # the stacked tensors grew: their first rows are what was there
        assert torch.equal(now[name][:2] if now[name].shape != tensor.shape else now[name], tensor), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("norm", ["statistics", "shared", "member"])
def test_in_low_precision_too_rows_of_several_tasks_are_answered_as_before(norm: str, dtype: torch.dtype) -> None:
    def task(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = images(seed)
        return x.to(dtype), y

    learner = Learner(backbone().to(dtype), head=5, norm=norm, training=QUICK)
    learner.learn(task(0), "a")
    learner.learn(task(1), "b")
    x, _ = task(2)
    before = learner(x, ["a", "b"] * 8)
    learner.learn_together({f"later-{seed}": task(seed) for seed in range(30)}, training=Training(epochs=0))
    assert torch.equal(learner(x, ["a", "b"] * 8), before)


def test_the_first_task_trains_everything_and_later_ones_only_their_own() -> None:
    plain = backbone()
    learner = Learner(plain, head=5, training=QUICK)
    start = copy.deepcopy(learner.network.ensemble.net)
    learner.learn(images(0))
    first = copy.deepcopy(learner.network.ensemble.net)
    for (name, old), new in zip(start.named_parameters(), first.parameters(), strict=True):
        assert not torch.equal(old, new), f"the first task trains {name}"
    learner.learn(images(1))
    for (name, old), new in zip(first.named_parameters(), learner.network.ensemble.net.parameters(), strict=True):
        layer, kind = name.split(".")
        if kind in ("r", "s", "bias") or layer in ("1", "5"):  # the norms
            assert len(new) == 2
            assert torch.equal(new[:1], old)
            assert not torch.equal(new[1], new[0]), f"the second task has its own {name}"
        else:
            assert torch.equal(old, new), name
    untouched = zip(plain.state_dict().values(), backbone().state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in untouched)


def test_it_learns_several_tasks() -> None:
    training = Training(epochs=40, batch_size=32, lr=0.1, weight_decay=0.0)
    learner = Learner(dense(), head=16, start="first", training=training)
    for shift in range(4):
        learner.learn(separable(shift), f"task{shift}")
    for shift in range(4):
        x, y = separable(shift + 4, rows=200)
        assert (learner.predict(x, f"task{shift}").label == y).float().mean() > 0.85


def test_a_batch_may_mix_tasks_with_different_numbers_of_classes() -> None:
    learner = Learner(backbone(), head=5, training=QUICK)
    learner.learn(images(0, classes=2), "two")
    learner.learn(images(1, rows=20, classes=5), "five")
    x, _ = images(2, rows=6)
    tasks = ["five", "two", "two", "five", "two", "five"]
    mixed = learner.predict(x, tasks)
    assert mixed.probs.shape == (6, 5)
    for row, task in enumerate(tasks):
        alone = learner.predict(x[row : row + 1], task)
        classes = alone.probs.shape[1]
        torch.testing.assert_close(mixed.probs[row, :classes], alone.probs[0])
        assert mixed.probs[row, classes:].eq(0).all()
    assert mixed.entropy.isfinite().all()
    pieces = learner.predict(x, tasks, batch_size=2)
    with pytest.raises(ValueError, match="batch_size must be a positive integer, got 0"):
        learner.predict(x, tasks, batch_size=0)
    torch.testing.assert_close(pieces.probs, mixed.probs)


def test_tasks_named_by_number_are_asked_for_by_a_tensor() -> None:
    learner = Learner(dense(), head=16, training=QUICK)
    learner.learn(separable(0))
    learner.learn(separable(1))
    assert learner.tasks == ("0", "1")
    x, _ = separable(2, rows=4)
    by_tensor = learner(x, torch.tensor([1, 0, 0, 1]))
    assert torch.equal(by_tensor, learner(x, ["1", "0", "0", "1"]))


@pytest.mark.parametrize("one", [1, "1", np.int64(1), torch.tensor(1)], ids=["int", "str", "NumPy", "torch"])
def test_one_task_may_be_a_number_of_any_kind(one: object) -> None:
    learner = Learner(dense(), head=16, training=Training(epochs=0))
    x, labels = separable()
    for _ in range(2):
        learner.learn((x, labels))
    assert torch.equal(learner.predict(x, one).probs, learner.predict(x, [1] * len(x)).probs)


def test_tasks_that_arrive_together_train_together_and_forget_nothing_either() -> None:
    learner = Learner(dense(), head=16, training=Training(epochs=20, batch_size=32))
    learner.learn(separable(0), "a")
    x, _ = separable(9)
    before = learner(x, "a")
    shared = copy.deepcopy(learner.network.ensemble.net[0].weight)
    history = learner.learn_together({"b": separable(1), "c": separable(2)})
    assert learner.tasks == ("a", "b", "c")
    assert len(history) == 20
    assert history[0].names == ("b", "c")
    assert torch.equal(learner(x, "a"), before)
    assert torch.equal(learner.network.ensemble.net[0].weight, shared)
    for name, shift in (("b", 1), ("c", 2)):
        x, y = separable(shift)
        assert (learner.predict(x, name).label == y).float().mean() > 0.8


def test_tasks_that_arrive_together_first_train_the_shared_weights() -> None:
    learner = Learner(dense(), head=16, training=Training(epochs=30, batch_size=32))
    start = copy.deepcopy(learner.network.ensemble.net[0].weight)
    learner.learn_together({"a": separable(0), "b": separable(1, rows=64)})
    assert not torch.equal(learner.network.ensemble.net[0].weight, start)
    for name, shift in (("a", 0), ("b", 1)):
        x, y = separable(shift + 4)
        assert (learner.predict(x, name).label == y).float().mean() > 0.8


def test_no_loss_sees_classes_that_a_rows_task_does_not_have() -> None:
    seen: dict[int, float] = {}

    def smooth(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        loss = nn.functional.cross_entropy(logits, labels, label_smoothing=0.1)
        seen[logits.shape[1]] = len(labels) * loss.item()
        return loss

    learner = Learner(backbone(), head=5, training=Training(epochs=1, batch_size=64, loss=smooth))
    tasks = {"a": images(0, classes=2), "b": images(1, rows=24), "c": images(2, classes=2)}
    history = learner.learn_together(tasks)
    assert history[0].loss == pytest.approx((seen[2] + seen[3]) / 56)
    assert [head.classes for head in learner.network.heads] == [2, 3, 2]


def test_forgetting_leaves_the_others_as_they_were() -> None:
    learner = Learner(backbone(), head=5, training=QUICK)
    for seed, name in enumerate("abc"):
        learner.learn(images(seed), name)
    x, _ = images(9)
    before = learner(x, "c")
    learner.forget("a")
    assert learner.tasks == ("b", "c")
    assert torch.equal(learner(x, "c"), before)
    assert not any(module.training for module in learner.modules())
    with pytest.raises(ValueError, match="unknown task 'a': this learner knows b, c"):
        learner.predict(x, "a")
    learner.forget("c")
    with pytest.raises(ValueError, match="'b' is the only one"):
        learner.forget("b")
    learner.learn(images(4))
    assert learner.tasks == ("b", "3")  # numbers are not used again


def test_an_extracted_task_is_a_plain_network_that_says_the_same() -> None:
    learner = Learner(backbone(), head=5, training=QUICK)
    learner.learn(images(0), "a")
    learner.learn(images(1), "b")
    x, _ = images(2)
    plain = learner.extract("b")
    torch.testing.assert_close(plain(x), learner(x, "b"))
    assert {type(module).__module__.split(".")[0] for module in plain.modules()} == {"torch"}


def test_pretrained_weights_are_never_trained() -> None:
    net = dense()
    learner = Learner(net, head=16, pretrained=True, init="ones", training=QUICK)
    x, _ = separable(0)
    torch.testing.assert_close(learner.network.ensemble(x, member=0), net(x))
    learner.learn_together({"a": separable(0), "b": separable(1)})
    learner.learn(separable(2), "c")
    assert torch.equal(learner.network.ensemble.net[0].weight, net[0].weight)
    assert len(learner.network.ensemble) == 3


def test_a_task_may_begin_as_the_most_similar_one() -> None:
    learner = Learner(dense(), head=16, start="similar", training=Training(epochs=40, batch_size=32, weight_decay=0.0))
    learner.learn(separable(0), "left")
    learner.learn(separable(1), "right")
    x, y = separable(1)
    scores = learner.similarity((x[::2], y[::2]))
    assert scores["right"] > scores["left"]
    learner.learn((x[::2], y[::2]), "again", training=Training(epochs=0))
    layer = learner.network.ensemble.net[0]
    assert torch.equal(layer.r[2], layer.r[1])
    assert not torch.equal(layer.r[2], layer.r[0])


def test_lateral_connections_begin_as_nothing_and_help_afterwards() -> None:
    learner = Learner(dense(), head=16, laterals=1, start="first", training=Training(epochs=20, batch_size=32))
    learner.learn(separable(0), "a")
    learner.learn(separable(1), "untrained", training=Training(epochs=0))
    learner.learn(separable(0), "b")
    x, _ = separable(5)
    heads = learner.network.heads
    assert heads[0].lateral is None
    assert heads[1].lateral.sources == ("a",)
    assert heads[1].lateral.up.weight.eq(0).all()
    assert not heads[2].lateral.up.weight.eq(0).all()
    own = learner.network.ensemble(x, member=2)
    seen = learner.network.ensemble(x, member=0)
    expected = heads[2].layers(own + heads[2].lateral([seen]))
    torch.testing.assert_close(learner(x, "b"), expected)
    mixed = learner(x[:4], ["a", "b", "b", "untrained"])
    torch.testing.assert_close(mixed[1:3], learner(x[1:3], "b"))
    with pytest.raises(ValueError, match="looks at task 'a'"):
        learner.forget("a")
    with pytest.raises(ValueError, match="no plain network"):
        learner.extract("b")


def test_a_learner_stays_in_evaluation_mode() -> None:
    learner = Learner(backbone(), head=5, training=QUICK)
    learner.learn(images(0))
    x, _ = images(1)
    before = learner(x, 0)
    learner.train()
    assert torch.equal(learner(x, 0), before)
    assert torch.equal(learner(x, 0), before)


def test_a_task_that_stalls_is_warned_of() -> None:
    learner = Learner(dense(), head=16, training=Training(epochs=20, batch_size=32))
    learner.learn(separable(0))
    x, _ = separable(1)
    noise = torch.randint(2, (len(x),), generator=torch.Generator().manual_seed(0))
    for name in ("second", "third"):
        with pytest.warns(StalledTask, match=f"task {name} ends .* rank 1 may not be enough"):
            learner.learn((x, noise), name, training=Training(epochs=1, batch_size=32, lr=1e-4))


def test_the_same_seed_gives_the_same_learner_whatever_else_draws_numbers() -> None:
    def learned(noise: int) -> torch.Tensor:
        torch.manual_seed(noise)
        learner = Learner(backbone(), head=5, training=QUICK, seed=3)
        learner.learn(images(0))
        torch.rand(noise)
        learner.learn(images(1))
        return learner(images(2)[0], "1")

    assert torch.equal(learned(1), learned(2))


def test_it_does_not_matter_where_torch_puts_tensors_by_default(tmp_path: Path) -> None:
    def learned(net: nn.Module, folder: Path) -> torch.Tensor:
        learner = Learner(net, head=16, start="similar", laterals=1, training=QUICK, folder=folder)
        learner.learn(first, "a")
        learner.learn_together({"b": second, "c": first})
        again = Learner(net, head=16, start="similar", laterals=1, folder=folder)
        return torch.cat([again(first[0], name) for name in "abc"])

    first, second, nets = separable(0), separable(1), [dense(), dense()]
    expected = learned(nets[0], tmp_path / "as usual")
    with torch.device("meta"):  # any device but the CPU, where the network and the data are
        found = learned(nets[1], tmp_path / "elsewhere")
    assert torch.equal(found, expected)


def test_a_learner_on_the_cpu_leaves_the_random_numbers_of_gpus_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def reached(seed: int) -> None:
        raise AssertionError(f"all GPUs were seeded with {seed}")

    net = dense()
    monkeypatch.setattr(torch.cuda, "manual_seed_all", reached)
    training = Training(epochs=1, augment=lambda x: x + torch.randn_like(x))
    learner = Learner(net, head=16, start="similar", laterals=1, training=training)
    learner.learn(separable(0))
    learner.learn(separable(1))
    assert learner.similarity(separable(2)).keys() == {"0", "1"}


def test_an_interrupted_learn_without_a_folder_leaves_the_learner_as_it_was() -> None:
    learner = Learner(backbone(), head=5, training=QUICK)
    learner.learn(images(0))
    x, _ = images(1)
    before = learner(x, 0)

    def stop(epoch: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.learn(images(1), "never", progress=stop)
    assert learner.tasks == ("0",)
    assert torch.equal(learner(x, 0), before)


def test_bad_input_is_named() -> None:
    learner = Learner(backbone(), head=5, training=QUICK)
    x, y = images(0)
    with pytest.raises(ValueError, match="unknown task 'birds': this learner knows none yet"):
        learner.predict(x, "birds")
    learner.learn((x, y), "birds")
    with pytest.raises(ValueError, match="unknown task 'cars': this learner knows birds"):
        learner.predict(x, ["cars"] * len(x))
    with pytest.raises(ValueError, match="one for each of the 16 rows; got 3"):
        learner.predict(x, ["birds"] * 3)
    with pytest.raises(ValueError, match="task 'birds' is known already"):
        learner.learn((x, y), "birds")
    with pytest.raises(ValueError, match="task 'cars' is empty"):
        learner.learn((x[:0], y[:0]), "cars")
    with pytest.raises(ValueError, match=r"has 2 classes, so labels must lie in \[0, 2\); got 2"):
        learner.learn((x, y), "cars", classes=2)
    for name in ("a/b", "", "a" * 129):
        with pytest.raises(ValueError, match="at most 128 bytes"):
            learner.learn((x, y), name)
    with pytest.raises(ValueError, match=r"classes= names tasks that are not to be learned: \['crs'\]"):
        learner.learn_together({"cars": (x, y)}, classes={"crs": 3})
    with pytest.raises(ValueError, match="unknown task 'None'"):
        learner.predict(x, None)
    with pytest.raises(ValueError, match="at least one task"):
        learner.learn_together({})
    with pytest.raises(ValueError, match="task '1' is known already"):
        learner.learn_together({"1": (x, y), 1: (x, y)})
    with pytest.raises(ValueError, match="start must be"):
        Learner(backbone(), head=5, start="last")


def test_heads_that_do_not_fit_are_named() -> None:
    wrong = Learner(backbone(), head=7, training=QUICK)
    with pytest.raises(ValueError, match=r"head=7 expects features \(N, 7\), got \(8, 5\)"):
        wrong.learn(images(0))
    stubborn = Learner(backbone(), head=lambda classes: nn.Linear(5, 4), training=QUICK)
    with pytest.raises(ValueError, match=r"the head of 3 classes gave logits of shape \(8, 4\)"):
        stubborn.learn(images(0))
    blind = Learner(dense(), head=lambda classes: nn.Linear(16, classes), laterals=1, training=QUICK)
    blind.learn(separable(0))
    with pytest.raises(ValueError, match="lateral connections need to know the number of features"):
        blind.learn(separable(1))


def test_heads_of_ones_own() -> None:
    learner = Learner(
        dense(), head=lambda classes: nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, classes)), training=QUICK
    )
    learner.learn(separable(0))
    assert learner.predict(separable(1)[0], 0).probs.shape == (96, 2)

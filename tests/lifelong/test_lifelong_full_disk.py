"""After an error of the disk a learner is as it was before, and the same call goes on."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from small_tasks import QUICK, data, net

from batchensemble.lifelong import Epoch, Learner

if sys.platform == "win32":
    pytest.skip("the system cannot limit what a process may write", allow_module_level=True)
import resource

X, _ = data(9)


@contextmanager
def no_room() -> Iterator[Callable[[], None]]:
    """From the call of what this yields, the system refuses to let any file grow beyond a few bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def opened(folder: Path) -> Learner:
    return Learner(net(), head=32, folder=folder, training=QUICK)


def answers(learner: Learner) -> dict[str, list[float]]:
    return {name: learner(X, name).flatten().tolist() for name in learner.tasks}


def refused(learner: Learner, act: Callable[[Callable[[], None]], object]) -> None:
    """An action that the disk refuses leaves the learner, and what a restart would find, as before."""
    assert learner.folder is not None
    before, weights = answers(learner), [p.clone() for p in learner.parameters()]
    trainable = [p.requires_grad for p in learner.parameters()]
    with no_room() as fill, pytest.raises(OSError, match=f"{learner.folder.path}.* is as it was before"):
        act(fill)
    assert answers(learner) == before
    assert all(torch.equal(p, q) for p, q in zip(learner.parameters(), weights, strict=True))
    assert [p.requires_grad for p in learner.parameters()] == trainable
    assert answers(opened(learner.folder.path)) == before


def at_the_end(fill: Callable[[], None]) -> Callable[[Epoch], None]:
    """Fill the disk when training is done and its last checkpoint is written."""
    return lambda epoch: fill() if epoch.epoch == epoch.epochs else None


@pytest.mark.parametrize("before", ["", "z"], ids=["the first", "later ones"])
@pytest.mark.parametrize("names", ["a", "ab"], ids=["alone", "together"])
def test_tasks_whose_files_did_not_fit_are_learned_by_the_same_call(tmp_path: Path, before: str, names: str) -> None:
    whole, full = opened(tmp_path / "whole"), opened(tmp_path / "full")
    together = {name: data(seed) for seed, name in enumerate(names)}
    for name in before:
        whole.learn(data(5), name)
        full.learn(data(5), name)
    whole.learn_together(together)
    refused(full, lambda fill: full.learn_together(together, progress=at_the_end(fill)))
    told: list[Epoch] = []
    full.learn_together(together, progress=told.append)
    assert told == [], "all epochs were done before"
    assert answers(full) == answers(whole) == answers(opened(tmp_path / "full"))
    full.learn(data(7), "next")
    assert opened(tmp_path / "full").tasks == (*before, *names, "next")


def test_a_task_that_did_not_fit_is_loaded_by_the_same_call(tmp_path: Path) -> None:
    learner = opened(tmp_path / "own")
    learner.learn(data(0), "a")
    learner.save_task("a", tmp_path / "a")
    refused(learner, lambda fill: (fill(), learner.load_task(tmp_path / "a", "copy")))
    learner.load_task(tmp_path / "a", "copy")
    assert answers(opened(tmp_path / "own")) == answers(learner)
    assert learner.tasks == ("a", "copy")


def test_a_pretrained_learner_is_as_before_if_its_first_task_did_not_fit(tmp_path: Path) -> None:
    def opened() -> Learner:
        return Learner(net(), head=32, pretrained=True, folder=tmp_path / "own", training=QUICK)

    whole = Learner(net(), head=32, pretrained=True, training=QUICK)
    whole.learn(data(0), "a")
    whole.learn(data(1), "b")
    learner = opened()
    before = {name: tensor.clone() for name, tensor in learner.state_dict().items()}
    with no_room() as fill, pytest.raises(OSError, match="as it was before"):
        learner.learn(data(0), "a", progress=at_the_end(fill))
    assert all(torch.equal(tensor, before[name]) for name, tensor in learner.state_dict().items())
    learner.learn(data(0), "a")
    learner.learn(data(1), "b")
    assert answers(learner) == answers(whole) == answers(opened())


def test_a_task_is_forgotten_on_the_disk_or_not_at_all(tmp_path: Path) -> None:
    learner = opened(tmp_path)
    for seed, name in enumerate("ab"):
        learner.learn(data(seed), name)
    refused(learner, lambda fill: (fill(), learner.forget("b")))  # that b was learned is noted in the file of a
    learner.forget("b")
    assert learner.tasks == opened(tmp_path).tasks == ("a",)


def test_a_learner_that_does_not_fit_leaves_the_one_that_was_saved_there(tmp_path: Path) -> None:
    one, other = (Learner(net(seed), head=32, training=QUICK, seed=seed) for seed in range(2))
    for seed, learner in enumerate((one, other)):
        learner.learn(data(seed), "a")
    one.save(tmp_path)
    with no_room() as fill:
        fill()
        with pytest.raises(OSError, match=f"{tmp_path} is as it was before"):
            other.save(tmp_path)
    assert answers(opened(tmp_path)) == answers(one)
    other.save(tmp_path)
    assert answers(opened(tmp_path)) == answers(other)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "shared.safetensors", "task-a.safetensors"]

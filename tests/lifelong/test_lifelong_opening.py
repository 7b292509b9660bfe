"""Whoever opens a folder reads every file once, and finds what was there at one moment."""

import shutil
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from small_tasks import QUICK, data, net

from batchensemble.lifelong import Learner, storage
from batchensemble.lifelong.network import Tasks

X, _ = data(9)


def opened(folder: Path) -> Learner:
    return Learner(net(), head=32, folder=folder, training=QUICK)


def answers(learner: Learner) -> dict[str, list[float]]:
    return {name: learner(X, name).flatten().tolist() for name in learner.tasks}


def forget(folder: Path) -> Callable[[], object]:
    learner = opened(folder)
    return lambda: learner.forget("b")


def learn_anew(folder: Path) -> Callable[[], object]:
    learner = opened(folder)
    return lambda: (learner.forget("b"), learner.learn(data(7), "b"))


def replace(folder: Path) -> Callable[[], object]:
    learner = Learner(net(3), head=32, training=QUICK, seed=3)
    learner.learn_together({name: data(seed) for seed, name in enumerate("abc", 5)})
    return lambda: learner.save(folder)


def opened_while(act: Callable[[], object], moment: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Learner:
    """Open a folder while another thread acts, before the read of that number."""
    read, reads = storage.read, 0

    def acted_meanwhile(path: Path, kind: str) -> storage.Stored:
        nonlocal reads
        reads += 1
        if reads == moment:
            with ThreadPoolExecutor(1) as another:
                another.submit(act).result()  # which reads, too
        return read(path, kind)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "read", acted_meanwhile)
        learner = opened(folder)
    assert reads >= moment
    return learner


@pytest.mark.parametrize("change", [forget, learn_anew, replace])
def test_a_folder_that_another_learner_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], Callable[[], object]]
) -> None:
    base = opened(tmp_path / "base")
    for seed, name in enumerate("abc"):
        base.learn(data(seed), name)
    for moment in range(1, 5):  # three tasks, and what they share
        folder = tmp_path / str(moment)
        shutil.copytree(tmp_path / "base", folder)
        found = opened_while(change(folder), moment, folder, monkeypatch)
        assert answers(found) == answers(opened(folder)) != answers(base)


@pytest.mark.filterwarnings("ignore:layer .* gets a single value")  # batches have fewer rows than two for each task
def test_every_file_is_read_once_and_all_tasks_are_taken_over_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = opened(tmp_path)
    learner.learn_together({str(number): data(number) for number in range(20)})
    counts: Counter[object] = Counter()

    def counted(kind: str, call: Callable[..., object]) -> Callable[..., object]:
        def counting(*args: object) -> object:
            counts[kind] += 1
            return call(*args)

        return counting

    monkeypatch.setattr(storage.files, "read", counted("read", storage.files.read))
    monkeypatch.setattr(Tasks, "adopt", counted("adopt", Tasks.adopt))
    again = opened(tmp_path)
    assert counts == {"read": 21, "adopt": 1}
    assert torch.equal(again(X, "13"), learner(X, "13"))

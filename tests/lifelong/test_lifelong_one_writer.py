"""One learner at a time writes to a folder, and only one that knows what is there."""

import copy
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from small_tasks import QUICK, data, net

from batchensemble.lifelong import Epoch, Learner
from batchensemble.locks import Busy

WRITING: dict[str, Callable[[Learner, Path], object]] = {
    "learn": lambda learner, folder: learner.learn(data(4), "new"),
    "load_task": lambda learner, folder: learner.load_task(folder.with_name("task"), "new"),
    "forget": lambda learner, folder: learner.forget("b"),
    "save": lambda learner, folder: learner.save(folder),
}
all_that_writes = pytest.mark.parametrize("write", WRITING.values(), ids=WRITING)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two tasks, and a file of a task beside it."""
    learner = Learner(net(), head=32, folder=tmp_path / "own", training=QUICK)
    for seed, name in enumerate("ab"):
        learner.learn(data(seed), name)
    learner.save_task("a", tmp_path / "task")
    return tmp_path / "own"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


HOLDER = """
import sys, time
sys.path.insert(0, sys.argv[2])
from small_tasks import net
from batchensemble.lifelong import Learner
learner = Learner(net(), head=32, folder=sys.argv[1])
with learner.folder.held(learner.network):
    print("held", flush=True)
    time.sleep(60)
"""


@all_that_writes
def test_a_folder_belongs_to_one_process_at_a_time(folder: Path, write: Callable[[Learner, Path], object]) -> None:
    learner, before = Learner(net(), head=32, folder=folder, training=QUICK), contents(folder)
    command = [sys.executable, "-c", HOLDER, str(folder), str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Busy, match="another process is learning in"):
            write(learner, folder)
        holder.kill()
    assert contents(folder) == before
    assert learner.tasks == ("a", "b")
    write(learner, folder)  # the lock went with the process
    assert Learner(net(1), head=32, folder=folder).tasks == learner.tasks


@all_that_writes
def test_what_another_learner_put_into_the_folder_is_not_written_over(
    folder: Path, write: Callable[[Learner, Path], object]
) -> None:
    first, second = (Learner(net(seed), head=32, folder=folder, training=QUICK) for seed in (0, 1))
    first.learn(data(2), "new")
    before = contents(folder)
    with pytest.raises(ValueError, match=r"this learner does not know, task-new\.safetensors: open it"):
        write(second, folder)
    assert contents(folder) == before
    assert second.tasks == ("a", "b")


@all_that_writes
def test_tasks_that_another_learner_has_forgotten_are_missed(
    folder: Path, write: Callable[[Learner, Path], object]
) -> None:
    first, second = (Learner(net(seed), head=32, folder=folder, training=QUICK) for seed in (0, 1))
    first.forget("b")
    if write is WRITING["save"]:
        write(second, folder)  # which brings them back
    else:
        with pytest.raises(ValueError, match=r"no longer holds task-b\.safetensors: open it with a new learner, or"):
            write(second, folder)
    assert second.tasks == ("a", "b")
    assert Learner(net(), head=32, folder=folder).tasks == (("a", "b") if write is WRITING["save"] else ("a",))


def two_that_know_another_b(folder: Path) -> tuple[Learner, Learner]:
    """Two learners, both looking at what is known; the second one was opened before the first one learned b anew."""
    first, second = (Learner(net(s), head=32, folder=folder, training=QUICK, laterals=9) for s in (0, 1))
    first.forget("b")
    first.learn(data(7), "b")
    return first, second


def test_a_task_that_another_learner_has_learned_anew_is_not_replaced_by_the_old_one(folder: Path) -> None:
    Learner(net(), head=32, folder=folder, training=QUICK).learn(data(3), "c")
    first, second = two_that_know_another_b(folder)
    before, (x, _) = contents(folder), data(9)
    with pytest.raises(ValueError, match="holds a task 'b' that was learned since this learner was opened: open it"):
        second.forget("c")  # and note in the file of b, the newest one then, that c was learned
    assert contents(folder) == before
    assert second.tasks == ("a", "b", "c")
    assert torch.equal(Learner(net(), head=32, folder=folder)(x, "b"), first(x, "b"))


@pytest.mark.parametrize("name", ["learn", "load_task"])
def test_no_task_looks_at_one_that_another_learner_has_learned_anew(folder: Path, name: str) -> None:
    looking = Learner(net(), head=32, folder=folder, training=QUICK, laterals=9)
    looking.learn(data(3), "c")
    looking.save_task("c", folder.with_name("task"))
    looking.forget("c")
    first, second = two_that_know_another_b(folder)
    before = contents(folder)
    with pytest.raises(ValueError, match="holds a task 'b' that was learned since"):
        WRITING[name](second, folder)
    assert contents(folder) == before
    assert second.tasks == ("a", "b")
    assert Learner(net(), head=32, folder=folder).tasks == first.tasks


@pytest.mark.parametrize("name", ["learn", "load_task", "forget"])
def test_a_learner_without_a_folder_is_changed_by_one_thread_at_a_time(folder: Path, name: str) -> None:
    learner = Learner(net(), head=32, training=QUICK)
    for seed, task in enumerate("ab"):
        learner.learn(data(seed), task)
    learner.save_task("a", folder.with_name("task"))
    refused: list[BaseException | None] = []

    def elsewhere(epoch: Epoch) -> None:
        with ThreadPoolExecutor(1) as pool:
            refused.append(pool.submit(WRITING[name], learner, folder).exception())
        copy.deepcopy(learner).forget("b")

    learner.learn(data(2), "c", progress=elsewhere)
    assert [str(error) for error in refused] == ["another thread is changing this learner: wait for it"] * 2
    assert learner.tasks == ("a", "b", "c")
    WRITING[name](learner, folder)


@pytest.mark.parametrize("name", ["learn", "load_task", "forget"])
def test_a_learner_that_was_cast_writes_nothing_beside_its_old_weights(folder: Path, name: str) -> None:
    learner, before = Learner(net(), head=32, folder=folder, training=QUICK), contents(folder)
    learner.double()
    with pytest.raises(ValueError, match="other shared weights than this learner has: was it cast"):
        WRITING[name](learner, folder)
    assert contents(folder) == before
    assert learner.tasks == ("a", "b")
    learner.save(folder)
    assert Learner(net().double(), head=32, folder=folder).tasks == ("a", "b")


def test_a_learner_writes_nothing_beside_the_weights_of_another_with_the_same_tasks(folder: Path) -> None:
    learner = Learner(net(), head=32, folder=folder, training=QUICK)
    other = Learner(net(3), head=32, training=QUICK)
    for seed, name in enumerate("ab"):
        other.learn(data(seed), name)
    other.save(folder)
    with pytest.raises(ValueError, match="or the folder replaced"):
        learner.learn(data(2), "c")
    assert Learner(net(), head=32, folder=folder).tasks == ("a", "b")


def test_whoever_opens_a_folder_waits_for_files_on_their_way_to_their_places(folder: Path) -> None:
    learner = Learner(net(), head=32, folder=folder, training=QUICK)
    there = learner.folder
    assert there is not None
    moving = threading.Event()

    def write() -> None:
        with there.held(learner.network):
            there.write(learner.network, "ab")
            (there.path / ".new" / "shared.safetensors").replace(there.shared)
            moving.set()
            time.sleep(0.3)

    writer = threading.Thread(target=write)
    writer.start()
    assert moving.wait(10)
    assert Learner(net(), head=32, folder=folder).tasks == ("a", "b")
    assert not (folder / ".new").exists()
    writer.join()

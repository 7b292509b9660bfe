"""A learner killed at any moment goes on from its folder."""

import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_tasks import QUICK, data, net
from torch import nn

from batchensemble.lifelong import Epoch, Learner, StalledTask, Training, storage
from batchensemble.lifelong.network import Tasks


def test_a_folder_holds_what_was_learned_in_order(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, folder=tmp_path, training=QUICK)
    for seed, name in enumerate(("z", "m", "a")):
        learner.learn(data(seed), name)
    learner.forget("m")
    x, _ = data(9)
    again = Learner(net(3), head=32, folder=tmp_path, training=QUICK)
    assert again.tasks == ("z", "a")
    assert torch.equal(again(x, "a"), learner(x, "a"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".lock", "shared.safetensors", "task-a.safetensors", "task-z.safetensors"
    ]  # fmt: skip
    again.learn(data(4))
    assert again.tasks[-1] == "3"


def test_a_folder_stays_where_it_was_when_the_process_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    learner = Learner(net(), head=32, folder="tasks", training=QUICK)
    learner.learn(data(0), "a")
    monkeypatch.chdir(tmp_path / "elsewhere")
    learner.learn(data(1), "b")
    learner.learn(data(2), "c")
    learner.forget("c")
    assert not list((tmp_path / "elsewhere").iterdir())
    assert Learner(net(), head=32, folder=tmp_path / "tasks").tasks == ("a", "b")


def life(folder: Path, tell: Callable[[Epoch], None]) -> list[float]:
    """Two tasks, whatever of them is not there yet, and what they say in the end."""
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 8))
    learner = Learner(backbone, head=8, folder=folder, training=Training(epochs=6, batch_size=8, lr=0.05))
    for seed, name in enumerate(("one", "two")):
        if name not in learner.tasks:
            learner.learn(data(seed), name, progress=tell)
    return torch.cat([learner(torch.ones(2, 6), name) for name in learner.tasks]).flatten().tolist()


def forgetful_life(folder: Path, tell: Callable[[Epoch], None]) -> list[float]:
    """Three tasks, of which the second is forgotten before the third, and what that one says in the end."""
    is_new = not folder.exists()
    learner = Learner(net(), head=32, folder=folder, start="init", training=replace(QUICK, epochs=4))
    if is_new:
        learner.learn(data(0), "one")
        learner.learn(data(1), "two")
        learner.forget("two")
    learner.learn(data(2), "three", progress=tell)
    learner.learn(data(3), progress=tell)
    assert learner.tasks == ("one", "three", "3")
    return torch.cat([learner(torch.ones(2, 6), name) for name in learner.tasks]).flatten().tolist()


SCRIPT = """
import pathlib, sys, time
sys.path.insert(0, sys.argv[1])
import test_lifelong_folder

def tell(epoch):
    print(epoch.names[0], epoch.epoch, flush=True)
    time.sleep(0.2)

print("answer", getattr(test_lifelong_folder, sys.argv[3])(pathlib.Path(sys.argv[2]), tell))
"""


def lived(folder: Path, until: str = "", kind: str = "life") -> list[str]:
    """Lines of a life in a process of its own, which is killed after a line."""
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), str(folder), kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        lines = []
        for line in process.stdout:
            lines.append(line.strip())
            if lines[-1] == until:
                process.send_signal(signal.SIGKILL)
        process.wait()
    assert process.returncode == (-signal.SIGKILL if until else 0)
    return lines


def test_a_learner_killed_twice_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    expected = life(tmp_path / "whole", lambda epoch: None)
    assert lived(tmp_path / "cut", until="one 3")[0] == "one 1"
    assert lived(tmp_path / "cut", until="two 2")[0] == "one 4", "it went on with the next epoch"
    assert (tmp_path / "cut" / "learning.pt").exists()
    rest = lived(tmp_path / "cut")
    assert rest[0] == "two 3"
    assert rest[-1] == f"answer {expected}"
    assert not (tmp_path / "cut" / "learning.pt").exists()


def test_a_learner_killed_after_it_forgot_the_newest_task_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    expected = forgetful_life(tmp_path / "whole", lambda epoch: None)
    assert lived(tmp_path / "cut", until="three 2", kind="forgetful_life") == ["three 1", "three 2"]
    rest = lived(tmp_path / "cut", kind="forgetful_life")
    assert rest[0] == "three 3", "it went on with the next epoch"
    assert rest[-1] == f"answer {expected}"


def test_how_many_tasks_were_learned_is_known_after_all_but_the_first_were_forgotten(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, folder=tmp_path / "own", training=QUICK)
    for seed, name in enumerate("abc"):
        learner.learn(data(seed), name)
    for name in "cb":
        learner.forget(name)
    learner.save(tmp_path / "saved")
    for folder in ("own", "saved"):
        again = Learner(net(3), head=32, folder=tmp_path / folder, training=QUICK)
        again.learn(data(4))
        assert again.tasks == ("a", "3")


def test_a_task_that_stalls_is_warned_of_also_after_a_restart(tmp_path: Path) -> None:
    x, _ = data(0)
    Learner(net(), head=32, folder=tmp_path, training=replace(QUICK, epochs=30)).learn((x, (x[:, 0] > 0).long()), "a")
    noise = torch.randint(2, (len(x),), generator=torch.Generator().manual_seed(0))
    with pytest.warns(StalledTask, match="the first task was learned much better"):
        Learner(net(), head=32, folder=tmp_path).learn((x, noise), training=replace(QUICK, epochs=1, lr=1e-4))


def test_a_task_is_in_its_place_also_where_the_warning_of_it_is_an_error(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, folder=tmp_path, training=replace(QUICK, epochs=30))
    x, _ = data(0)
    learner.learn((x, (x[:, 0] > 0).long()), "a")
    noise = torch.randint(2, (len(x),), generator=torch.Generator().manual_seed(0))
    with pytest.raises(StalledTask):
        learner.learn((x, noise), "b", training=replace(QUICK, epochs=1, lr=1e-4))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".lock", "shared.safetensors", "task-a.safetensors", "task-b.safetensors"
    ]  # fmt: skip
    assert learner.tasks == ("a", "b")


def test_a_checkpoint_of_another_training_is_given_up(tmp_path: Path) -> None:
    def stop(epoch: object) -> None:
        raise KeyboardInterrupt

    learner = Learner(net(), head=32, folder=tmp_path, training=QUICK)
    with pytest.raises(KeyboardInterrupt):
        learner.learn(data(0), "a", progress=stop)
    with pytest.warns(UserWarning, match="another training with other settings and optimizer, which is given up"):
        learner.learn(data(0), "a", training=Training(epochs=1, batch_size=8))
    assert learner.tasks == ("a",)


def test_a_training_goes_on_with_other_workers(tmp_path: Path) -> None:
    def stop(epoch: object) -> None:
        raise KeyboardInterrupt

    whole = Learner(net(), head=32, training=QUICK)
    whole.learn(data(0), "a")
    learner = Learner(net(), head=32, folder=tmp_path, training=QUICK)
    with pytest.raises(KeyboardInterrupt):
        learner.learn(data(0), "a", progress=stop)
    told: list[Epoch] = []
    learner.learn(data(0), "a", training=replace(QUICK, workers=1), progress=told.append)
    assert [epoch.epoch for epoch in told] == [2]
    assert torch.equal(learner(data(0)[0], "a"), whole(data(0)[0], "a"))


@pytest.mark.parametrize(
    "changed",
    [
        {"rank": 2},
        {"training": replace(QUICK, optimizer=torch.optim.Adam)},
        {"training": replace(QUICK, autocast=torch.bfloat16)},
    ],
    ids=["rank", "optimiser", "precision"],
)
def test_a_checkpoint_of_another_network_or_optimiser_is_given_up(tmp_path: Path, changed: dict) -> None:
    def stop(epoch: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Learner(net(), head=32, folder=tmp_path, training=QUICK).learn(data(0), "a", progress=stop)
    learner = Learner(net(), head=32, folder=tmp_path, **{"training": QUICK, **changed})
    with pytest.warns(UserWarning, match="another training.*which is given up"):
        learner.learn(data(0), "a")


@pytest.mark.parametrize("kept", [0, 0.5, "not a checkpoint" * 20])
def test_a_damaged_checkpoint_says_what_to_do(tmp_path: Path, kept: float | str) -> None:
    def stop(epoch: object) -> None:
        raise KeyboardInterrupt

    learner, path = Learner(net(), head=32, folder=tmp_path, training=QUICK), tmp_path / "learning.pt"
    with pytest.raises(KeyboardInterrupt):
        learner.learn(data(0), "a", progress=stop)
    whole = path.read_bytes()
    path.write_bytes(kept.encode() if isinstance(kept, str) else whole[: int(kept * len(whole))])
    with pytest.raises(ValueError, match=r"learning\.pt is damaged: delete it"):
        learner.learn(data(0), "a")


@pytest.mark.parametrize("before", [(), ("z",)], ids=["the first", "later ones"])
def test_tasks_learned_together_and_cut_short_between_their_files_are_learned_again(
    tmp_path: Path, before: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    together, (x, _) = {"a": data(0), "b": data(1)}, data(3)

    def learner(folder: Path) -> Learner:
        return Learner(net(), head=32, folder=folder, training=QUICK)

    whole, cut = learner(tmp_path / "whole"), learner(tmp_path / "cut")
    for one in (whole, cut):
        for name in before:
            one.learn(data(2), name)
    whole.learn_together(together)
    save_task = storage.save_task

    def killed(tasks: Tasks, place: int, *rest: Any) -> None:
        if tasks.names[place] == "b":
            raise KeyboardInterrupt
        save_task(tasks, place, *rest)

    monkeypatch.setattr(storage, "save_task", killed)
    with pytest.raises(KeyboardInterrupt):
        cut.learn_together(together)
    monkeypatch.undo()
    again = learner(tmp_path / "cut")
    assert again.tasks == before
    again.learn_together(together)
    assert again.tasks == learner(tmp_path / "cut").tasks == whole.tasks
    assert all(torch.equal(again(x, name), whole(x, name)) for name in together)


def test_forgetting_one_of_several_whose_checkpoint_a_kill_has_left_keeps_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = Learner(net(), head=32, folder=tmp_path, training=QUICK)
    learner.learn(data(2), "first")

    unlink = Path.unlink

    def killed(path: Path, missing_ok: bool = False) -> None:
        if path.name == "learning.pt":  # all tasks are written by then
            raise KeyboardInterrupt
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", killed)
    with pytest.raises(KeyboardInterrupt):
        learner.learn_together({"a": data(0), "b": data(1)})
    monkeypatch.undo()
    again = Learner(net(), head=32, folder=tmp_path, training=QUICK)
    assert again.tasks == ("first", "a", "b")
    again.forget("b")
    assert Learner(net(), head=32, folder=tmp_path).tasks == ("first", "a")


def test_a_loaded_task_is_the_newest_also_after_a_restart(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, folder=tmp_path / "home", training=QUICK)
    for seed, name in enumerate("ab"):
        learner.learn(data(seed), name)
    learner.save_task("a", tmp_path / "a")
    learner.load_task(tmp_path / "a", "copy")
    assert Learner(net(), head=32, folder=tmp_path / "home").tasks == learner.tasks == ("a", "b", "copy")


def test_a_folder_with_other_tasks_is_not_written_over(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, training=QUICK)
    for seed, name in enumerate("ab"):
        learner.learn(data(seed), name)
    learner.save(tmp_path)
    learner.forget("b")
    with pytest.raises(ValueError, match=r"holds tasks that this learner does not know, task-b\.safetensors"):
        learner.save(tmp_path)  # or b would be back after a restart
    assert Learner(net(), head=32, folder=tmp_path).tasks == ("a", "b")


def test_a_first_task_cut_short_between_its_two_files_is_learned_again(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, folder=tmp_path, training=QUICK)
    learner.learn(data(0), "a")
    x, _ = data(3)
    before = learner(x, "a")
    (tmp_path / "task-a.safetensors").unlink()  # as if killed right after the shared file
    again = Learner(net(), head=32, folder=tmp_path, training=QUICK)
    assert again.tasks == ()
    again.learn(data(0), "a")
    assert torch.equal(again(x, "a"), before)


def test_tasks_without_the_weights_that_they_share_are_refused(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, folder=tmp_path, training=QUICK)
    for seed, name in enumerate("ab"):
        learner.learn(data(seed), name)
    (tmp_path / "shared.safetensors").unlink()  # as if the folder had been copied in part
    with pytest.raises(
        ValueError, match=r"holds task-a\.safetensors, task-b\..*, but not shared\..*: restore that file"
    ):
        Learner(net(), head=32, folder=tmp_path)
    learner.learn(data(2), "c")  # which knows them still
    x, _ = data(9)
    again = Learner(net(3), head=32, folder=tmp_path)
    assert all(torch.equal(again(x, name), learner(x, name)) for name in "abc")

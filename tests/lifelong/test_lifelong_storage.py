"""Task files are small and refuse strangers; a learner killed at any moment goes on from its folder."""

import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from batchensemble import files
from batchensemble.lifelong import Epoch, Learner, Training, storage
from batchensemble.lifelong.network import Tasks

QUICK = Training(epochs=2, batch_size=8, lr=0.05)


def data(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(24, 6, generator=torch.Generator().manual_seed(seed))
    return x, torch.arange(24) % 3


def net(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32))


def test_a_task_travels_as_a_small_file(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, training=QUICK)
    learner.learn(data(0), "a")
    learner.save(tmp_path / "all")
    learner.learn(data(1), "b")
    learner.save_task("b", tmp_path / "b.safetensors")
    assert (tmp_path / "b.safetensors").stat().st_size < 4096

    server = Learner(net(7), head=32, folder=tmp_path / "all")
    assert server.tasks == ("a",)
    assert server.load_task(tmp_path / "b.safetensors", name="renamed") == "renamed"
    x, _ = data(5)
    assert torch.equal(server(x, "a"), learner(x, "a"))
    assert torch.equal(server(x, "renamed"), learner(x, "b"))
    server.learn(data(2), "c")
    assert Learner(net(8), head=32, folder=tmp_path / "all").tasks == ("a", "renamed", "c")
    with pytest.raises(ValueError, match="'renamed' is known already"):
        server.load_task(tmp_path / "b.safetensors", name="renamed")


def test_a_task_file_is_refused_on_other_weights(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, norm="shared", training=QUICK)
    learner.learn(data(0), "a")
    learner.save_task("a", tmp_path / "a.safetensors")
    with pytest.raises(ValueError, match="other shared weights: they differ first in layer '0'"):
        Learner(net(), head=32, norm="shared").load_task(tmp_path / "a.safetensors")
    other = Learner(net(), head=32, norm="shared", training=QUICK)
    other.learn(data(0), "a")
    other.network.ensemble.net[1].running_mean[3] += 1e-3
    with pytest.raises(ValueError, match="they differ first in layer '1'"):
        other.load_task(tmp_path / "a.safetensors", name="b")
    learner.network.ensemble.save_member(0, tmp_path / "member.safetensors")
    with pytest.raises(ValueError, match="expected one task"):
        learner.load_task(tmp_path / "member.safetensors")


def test_a_task_file_of_another_rank_does_not_fit(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, pretrained=True, training=QUICK)
    learner.learn(data(0), "a")
    learner.save_task("a", tmp_path / "a.safetensors")
    with pytest.raises(ValueError, match="does not fit"):
        Learner(net(), head=32, rank=2, pretrained=True).load_task(tmp_path / "a.safetensors")


def test_a_task_that_looks_at_another_is_refused_without_it(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, laterals=1, pretrained=True, training=QUICK)
    learner.learn(data(0), "a")
    learner.learn(data(1), "b")
    learner.save_task("a", tmp_path / "a.safetensors")
    learner.save_task("b", tmp_path / "b.safetensors")
    server = Learner(net(), head=32, pretrained=True)
    with pytest.raises(ValueError, match="looks at task 'a', which is not known here"):
        server.load_task(tmp_path / "b.safetensors")
    server.load_task(tmp_path / "a.safetensors")
    server.load_task(tmp_path / "b.safetensors")
    x, _ = data(5)
    assert torch.equal(server(x, "b"), learner(x, "b"))


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


def life(folder: Path, tell: Callable[[Epoch], None]) -> list[float]:
    """Two tasks, whatever of them is not there yet, and what they say in the end."""
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 8))
    learner = Learner(backbone, head=8, folder=folder, training=Training(epochs=6, batch_size=8, lr=0.05))
    for seed, name in enumerate(("one", "two")):
        if name not in learner.tasks:
            learner.learn(data(seed), name, progress=tell)
    return torch.cat([learner(torch.ones(2, 6), name) for name in learner.tasks]).flatten().tolist()


SCRIPT = """
import pathlib, sys, time
sys.path.insert(0, sys.argv[1])
from test_lifelong_storage import life

def tell(epoch):
    print(epoch.names[0], epoch.epoch, flush=True)
    time.sleep(0.2)

print("answer", life(pathlib.Path(sys.argv[2]), tell))
"""


def lived(folder: Path, until: str = "") -> list[str]:
    """Lines of a life in a process of its own, which is killed after a line."""
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), str(folder)]
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


def test_a_checkpoint_of_another_training_is_given_up(tmp_path: Path) -> None:
    def stop(epoch: object) -> None:
        raise KeyboardInterrupt

    learner = Learner(net(), head=32, folder=tmp_path, training=QUICK)
    with pytest.raises(KeyboardInterrupt):
        learner.learn(data(0), "a", progress=stop)
    with pytest.warns(UserWarning, match="another training, which is given up"):
        learner.learn(data(0), "a", training=Training(epochs=1, batch_size=8))
    assert learner.tasks == ("a",)


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
    with pytest.warns(UserWarning, match="another training, which is given up"):
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
    with pytest.raises(ValueError, match=r"holds other tasks, task-b\.safetensors"):
        learner.save(tmp_path)  # or b would be back after a restart
    assert Learner(net(), head=32, folder=tmp_path).tasks == ("a", "b")


def test_a_name_in_a_file_leads_nowhere_else(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, training=QUICK)
    learner.learn(data(0), "a")
    learner.save_task("a", tmp_path / "a")
    tensors, header = files.read(tmp_path / "a", "task")
    files.write(tmp_path / "a", "task", tensors, {**header, "name": "../elsewhere"})
    with pytest.raises(ValueError, match="a task's name is made of"):
        learner.load_task(tmp_path / "a")


def test_names_that_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, training=QUICK)
    learner.learn(data(0), "birds")
    learner.save_task("birds", tmp_path / "a")
    same = "'Birds' would share a file with task 'birds'"
    with pytest.raises(ValueError, match=same):
        learner.learn(data(1), "Birds")
    with pytest.raises(ValueError, match="'B' would share a file with task 'b'"):
        learner.learn_together({"b": data(1), "B": data(2)})
    with pytest.raises(ValueError, match=same):
        learner.load_task(tmp_path / "a", "Birds")
    assert learner.tasks == ("birds",)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_learner_may_be_of_another_precision(tmp_path: Path, dtype: torch.dtype) -> None:
    x, y = data(0)
    x = x.to(dtype)
    learner = Learner(net().to(dtype), head=32, laterals=1, training=QUICK)
    for name in "ab":
        learner.learn((x, y), name)
    learner.save(tmp_path)
    again = Learner(net().to(dtype), head=32, laterals=1, folder=tmp_path)
    assert learner(x, "b").dtype == dtype
    assert torch.equal(again(x, "b"), learner(x, "b"))


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


HOLDER = """
import sys, time
from pathlib import Path
from batchensemble.lifelong.storage import Folder
with Folder(Path(sys.argv[1])).held():
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_folder_belongs_to_one_process_at_a_time(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, folder=tmp_path, training=QUICK)
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RuntimeError, match="another process is learning in"):
            learner.learn(data(0), "a")
        holder.kill()
    learner.learn(data(0), "a")  # the lock went with the process
    assert Learner(net(1), head=32, folder=tmp_path).tasks == ("a",)


def test_what_another_learner_put_into_the_folder_is_not_written_over(tmp_path: Path) -> None:
    first, second = (Learner(net(seed), head=32, folder=tmp_path, training=QUICK) for seed in (0, 1))
    first.learn(data(0), "a")
    kept = {path.name: path.read_bytes() for path in tmp_path.glob("*.safetensors")}
    with pytest.raises(ValueError, match=r"not there when it was opened, task-a\.safetensors: open it"):
        second.learn(data(1), "b")
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.safetensors")} == kept
    assert second.tasks == ()

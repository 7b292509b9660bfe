"""Task files are small and refuse strangers."""

from pathlib import Path

import pytest
import torch
from small_tasks import QUICK, data, net
from torch import nn

from batchensemble import files
from batchensemble.lifelong import Learner


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


def test_what_is_read_from_files_is_in_evaluation_mode(tmp_path: Path) -> None:
    def head(classes: int) -> nn.Module:
        return nn.Sequential(nn.Dropout(), nn.Linear(32, classes))

    def learner() -> Learner:
        return Learner(net(), head=head, folder=tmp_path / "own", training=QUICK)

    first, (x, _) = learner(), data(5)
    first.learn(data(0), "a")
    first.save_task("a", tmp_path / "a")
    again = learner()
    assert not any(module.training for module in again.modules())
    assert torch.equal(again(x, "a"), first(x, "a"))
    again.load_task(tmp_path / "a", "copy")
    assert not any(module.training for module in again.modules())
    assert torch.equal(again(x, "copy"), first(x, "a"))


def test_loading_a_task_leaves_random_numbers_as_they_are(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, training=QUICK)
    learner.learn(data(0), "a")
    learner.save_task("a", tmp_path / "a.safetensors")
    before = torch.get_rng_state()
    learner.load_task(tmp_path / "a.safetensors", "b")
    assert torch.equal(torch.get_rng_state(), before)


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


def test_a_name_in_a_file_leads_nowhere_else(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, training=QUICK)
    learner.learn(data(0), "a")
    learner.save_task("a", tmp_path / "a")
    tensors, header = files.read(tmp_path / "a", "task")
    files.write(tmp_path / "a", "task", tensors, {**header, "name": "../elsewhere"})
    with pytest.raises(ValueError, match="a task's name is made of"):
        learner.load_task(tmp_path / "a")


def test_a_folder_of_another_precision_is_refused(tmp_path: Path) -> None:
    learner = Learner(net(), head=32, training=QUICK)
    learner.learn(data(0), "a")
    learner.save(tmp_path)
    with pytest.raises(ValueError, match=r"is torch\.float32 in the file and torch\.float64 in the network"):
        Learner(net().double(), head=32, folder=tmp_path)


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

"""Processes that train together enter a folder together."""

import threading
from types import SimpleNamespace

import pytest
from torch import nn

from batchensemble.lab.studies import parts
from batchensemble.lab.studies.classification import Recipe, trainer
from batchensemble.lab.studies.study import Context
from batchensemble.lab.studies.translation import recipe as translation_recipe
from batchensemble.lab.studies.translation import trainer as translation_trainer
from batchensemble.lab.training.devices import device_kind, locked_together
from batchensemble.locks import locked


def test_all_wait_until_the_first_has_the_lock(tmp_path):
    entered, both = [], threading.Barrier(2)

    def process(rank):
        fabric = SimpleNamespace(is_global_zero=rank == 0, barrier=lambda: both.wait(20))
        with locked_together(fabric, tmp_path / "weights", wait=True):
            entered.append(rank)

    processes = [threading.Thread(target=process, args=(rank,)) for rank in (0, 1)]
    with locked(tmp_path / "weights"):
        for thread in processes:
            thread.start()
        processes[1].join(0.3)
        assert not entered, "somebody else is still writing"
    for thread in processes:
        thread.join(20)
    assert sorted(entered) == [0, 1]


@pytest.mark.parametrize("module", [trainer, translation_trainer], ids=["classification", "translation"])
def test_a_process_reads_no_checkpoint_before_the_first_has_the_lock(module, tmp_path, monkeypatch):
    events = []
    fabric = SimpleNamespace(is_global_zero=False, barrier=lambda: events.append("barrier"))
    training = SimpleNamespace(model=nn.Identity())
    monkeypatch.setattr(parts if module is trainer else module, "fit", lambda *_: events.append("fit") or [])
    monkeypatch.setattr(module.Trainer, "_training", lambda *_: training)
    if module is trainer:
        trainer.Trainer(fabric, Context(work=tmp_path), None, None).parts(Recipe(), 0)
    else:
        monkeypatch.setattr(module.Trainer, "_translator", lambda *_: None)
        data = SimpleNamespace(digest={})
        module.Trainer(fabric, Context(work=tmp_path), data).train(translation_recipe.Recipe(), 0)
    assert events == ["barrier", "fit"]


def test_missing_gpus_are_named(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ValueError, match="expected 1 CUDA device, found none"):
        device_kind("cuda")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    with pytest.raises(ValueError, match="expected 4 CUDA devices, found 1"):
        device_kind("cuda", 4)

"""The training loop: what it computes, and that nothing is lost when it is killed."""

import json
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from batchensemble.checkpoint import DamagedCheckpoint, load_checkpoint
from batchensemble.lab.training.devices import start_fabric
from batchensemble.lab.training.fit import TrainingJob, Workplace, fit
from batchensemble.lab.training.optimizers import sgd
from batchensemble.lab.training.schedules import drops
from batchensemble.optim import Diverged
from batchensemble.seeds import seed_of


class Points:
    """Ten batches of random points and classes per epoch."""

    def __len__(self):
        return 10

    def epoch(self, number):
        generator = torch.Generator().manual_seed(seed_of(7, number))
        for _ in range(10):
            x = torch.randn(16, 6, generator=generator)
            yield x, (x[:, 0] > 0).long()


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))


def loss(model, batch):
    x, y = batch
    return {"loss": F.cross_entropy(model(x), y)}


def training(epochs=4, rate=0.1, **more):
    model = network()
    groups = [{"params": model.parameters(), "lr": rate, "weight_decay": 1e-3}]
    optimizer = sgd(groups, torch.device("cpu"))
    return TrainingJob(model, loss, Points(), optimizer, drops(0.5), epochs, seed=3, **more)


def train(folder, **settings):
    work = training(**settings)
    log = fit(work, Workplace(start_fabric("cpu"), folder, save_every=0.0))
    return work.model.state_dict(), log


def test_fit_is_the_loop_one_would_write(tmp_path):
    model = network().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3)
    losses = []
    for epoch in range(4):
        torch.manual_seed(seed_of(3, epoch, 0))
        for x, y in Points().epoch(epoch):
            optimizer.param_groups[0]["lr"] = 0.1 if epoch < 2 else 0.01
            optimizer.zero_grad()
            losses.append(F.cross_entropy(model(x), y))
            losses[-1].backward()
            optimizer.step()
    state, log = train(tmp_path)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(state[name], value)
    assert [line["epoch"] for line in log] == [0, 1, 2, 3]
    assert [line["rate"] for line in log] == pytest.approx([0.1, 0.1, 0.01, 0.01])
    assert log[-1]["loss"] == pytest.approx(torch.stack(losses[-10:]).mean().item())


def test_a_checkpoint_without_its_log_is_refused(tmp_path):
    train(tmp_path)
    lines = (tmp_path / "log.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "log.jsonl").write_text("".join(lines[:1]))
    with pytest.raises(DamagedCheckpoint, match=r"log\.jsonl tells of 1 epochs, last\.pt of 4: delete"):
        train(tmp_path)


def test_the_outside_keeps_its_random_numbers(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    work = training(epochs=1)
    torch.manual_seed(5)
    fit(work, Workplace(start_fabric("cpu"), tmp_path))
    assert torch.equal(torch.rand(3), expected)


def test_it_seeds_no_device_but_its_own(tmp_path, monkeypatch):
    work, seeds = training(epochs=1), []
    monkeypatch.setattr(torch, "manual_seed", seeds.append)  # seeds every device there is
    fit(work, Workplace(start_fabric("cpu"), tmp_path))
    assert not seeds


def test_a_damaged_checkpoint_is_refused_wherever_it_was_cut(tmp_path):
    train(tmp_path)
    whole = (tmp_path / "last.pt").read_bytes()
    for keep in range(0, len(whole), len(whole) // 12):
        (tmp_path / "last.pt").write_bytes(whole[:keep])
        with pytest.raises(DamagedCheckpoint, match=r"last\.pt is damaged: delete it"):
            train(tmp_path)


def test_a_finished_training_is_not_repeated(tmp_path):
    state, log = train(tmp_path)
    again, same_log = train(tmp_path)
    assert log == same_log
    assert all(torch.equal(again[name], state[name]) for name in state)


def test_numbers_after_every_epoch_are_logged(tmp_path):
    _, log = train(tmp_path, epochs=2, after_epoch=lambda epoch: {"validation": epoch + 0.5})
    assert [line["validation"] for line in log] == [0.5, 1.5]
    assert list(tmp_path.glob("tensorboard/events*"))


def test_without_tensorboard_there_is_the_log_alone(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    _, log = train(tmp_path, epochs=2)
    assert [line["epoch"] for line in log] == [0, 1]
    assert not (tmp_path / "tensorboard").exists()


def test_it_stops_when_a_line_is_good_enough_and_stays_so(tmp_path):
    seen = []

    def after(epoch):
        seen.append(epoch)
        return {"validation": 3.0 - epoch}

    stop = {"epochs": 6, "after_epoch": after, "until": lambda line: line["validation"] <= 1.0}
    state, log = train(tmp_path, **stop)
    assert [line["validation"] for line in log] == [3.0, 2.0, 1.0]
    again, same_log = train(tmp_path, **stop)
    assert seen == [0, 1, 2]
    assert log == same_log
    assert all(torch.equal(again[name], state[name]) for name in state)
    _, longer = train(tmp_path, **stop | {"until": lambda line: line["validation"] <= 0.0})
    assert [line["epoch"] for line in longer] == [0, 1, 2, 3]


def test_a_loss_that_is_not_a_number_stops(tmp_path):
    with pytest.raises(Diverged, match="the loss is nan after epoch 1: try a lower learning rate"):
        train(tmp_path, rate=float("nan"))


SCRIPT = """
    import sys, time
    sys.path.insert(0, {tests!r})
    import test_fit
    from pathlib import Path

    class Slow(test_fit.Points):
        def epoch(self, number):
            for batch in super().epoch(number):
                time.sleep(0.005)
                yield batch

    test_fit.Points = Slow
    test_fit.train(Path(sys.argv[1]), epochs=12)
"""


def kill_after(folder, lines, moment):
    """Starts the training in a process of its own and kills it `moment` seconds after its log has `lines`."""
    code = textwrap.dedent(SCRIPT.format(tests=str(Path(__file__).parent)))
    log = folder / "log.jsonl"
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)])
    while not (log.exists() and log.read_text().count("\n") >= lines):
        assert process.poll() is None
        time.sleep(0.002)
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def test_killed_at_any_moment_it_ends_as_if_it_had_not_been(tmp_path):
    for lines, moment in [(2, 0.0), (5, 0.12)]:  # beside the checkpoint's writing, and inside an epoch
        kill_after(tmp_path, lines, moment)
        assert 0 < load_checkpoint(tmp_path / "last.pt")["epoch"] < 12

    resumed, log = train(tmp_path, epochs=12)
    unbroken, unbroken_log = train(tmp_path / "unbroken", epochs=12)
    assert all(torch.equal(resumed[name], unbroken[name]) for name in unbroken)
    assert [drop_time(line) for line in log] == [drop_time(line) for line in unbroken_log]


def drop_time(line):
    return json.dumps({name: value for name, value in line.items() if name != "seconds"})

"""Two processes train as one: real processes, gloo between them, in float64."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch

from batchensemble.lab.data import procedural
from batchensemble.lab.methods.ensembles import BatchEnsemble, Naive
from batchensemble.lab.models import lenet, resnet
from batchensemble.lab.studies.images import ImageBatches, View
from batchensemble.lab.training.devices import start_fabric
from batchensemble.lab.training.fit import TrainingJob, Workplace, fit
from batchensemble.lab.training.optimizers import sgd
from batchensemble.lab.training.schedules import cosine
from batchensemble.lab.training.synchronise import synchronised_


def plain(generator=None, **_):
    """A network without batch norm."""
    return lenet(10, generator=generator)


def normed(generator=None, **_):
    return resnet(8, 1, 10, generator=generator)


CASES = {
    "sub-batches": (plain, BatchEnsemble(4), False),
    "own members": (plain, BatchEnsemble(4), True),
    "repeated": (plain, BatchEnsemble(4, rows="repeated", decay="mean"), False),
    "own crops, own members": (plain, BatchEnsemble(4, rows="own crops"), True),
    "naive": (plain, Naive(2, together=True), False),
    "synchronised norm": (normed, BatchEnsemble(4), False),
}


def train(case, fabric, folder):
    """Two epochs of three steps; returns weights and statistics."""
    network, method, own_members = CASES[case]
    data, _ = procedural(10, train=48, test=1)
    model = method.build(network, seed=0).double()
    if fabric.world_size > 1:
        model = synchronised_(model, fabric.device)
    streams = method.streams(0)
    batches = ImageBatches(data, View.of(data, pad=4), streams, 16, fabric.global_rank, fabric.world_size, own_members)
    loss = partial(method.loss, weight_decay=1e-3)
    training = TrainingJob(model, loss, batches, sgd(method.groups(model, 0.05, 1e-3), fabric.device), cosine, 2)
    log = fit(training, Workplace(fabric, folder))
    return model.state_dict(), [line["loss"] for line in log]


def main(folder):
    """What every one of the two processes does."""
    torch.set_num_threads(1)
    fabric = start_fabric("cpu", devices=2, precision="fp64")
    for case in CASES:
        outcome = train(case, fabric, folder / case)
        torch.save(outcome, folder / f"{case} {fabric.global_rank}.pt")


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    here = str(Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {here!r}); import test_processes, pathlib; "
    script = folder / "script.py"
    script.write_text(code + f"test_processes.main(pathlib.Path({str(folder)!r}))")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error::FutureWarning"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("case", CASES)
def test_two_processes_train_as_one(case, two_processes, tmp_path):
    expected, losses = train(case, start_fabric("cpu", precision="fp64"), tmp_path)
    for rank in (0, 1):
        state, logged = torch.load(two_processes / f"{case} {rank}.pt")
        assert logged == pytest.approx(losses)
        for name, value in expected.items():
            torch.testing.assert_close(state[name], value, msg=lambda text, name=name: f"{name}: {text}")


def test_norms_of_members_are_refused_on_several_devices():
    model = BatchEnsemble(2, norm="member").build(normed, 0)
    with pytest.raises(ValueError, match="norm='member' trains on one device"):
        synchronised_(model, torch.device("cpu"))

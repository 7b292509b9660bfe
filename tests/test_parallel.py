"""An ensemble on several devices: DataParallel's replicas, DDP and FSDP in two processes."""

import copy
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ensembles import convnet, ensemble, images, mlp, rows
from torch import Tensor, nn

import batchensemble as be

close = partial(torch.testing.assert_close, rtol=1e-3, atol=1e-4)
CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "linear": (mlp, rows, {}),
    "convolutions, norm per member": (convnet, images, {"norm": "member"}),
    "convolutions, late": (convnet, images, {"fan_out": "5"}),
    "recurrent": (lambda: nn.LSTM(4, 3, batch_first=True), lambda: torch.randn(6, 5, 4), {"combine": "mean"}),
}


def answer(out: Any) -> Tensor:
    return out[0] if isinstance(out, tuple) else out  # an LSTM's states come with it


@pytest.mark.parametrize(("make", "batch", "options"), CASES.values(), ids=CASES)
def test_replicas_of_data_parallel_answer_for_themselves(
    make: Any, batch: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`nn.DataParallel` needs several GPUs; here its broadcast makes the second copy of all tensors another one."""

    def broadcast(tensors: Any, devices: Any, detach: bool = False) -> Any:
        return [[tensor * (1 + device) for tensor in tensors] for device in devices] if tensors else []

    monkeypatch.setattr(sys.modules["torch.nn.parallel.replicate"], "_broadcast_coalesced_reshape", broadcast)
    model, x = ensemble(make(), **options).eval(), batch()
    first, second = nn.parallel.replicate(model, [0, 1], detach=True)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for tensor in [*other.parameters(), *other.buffers()]:
            tensor.mul_(2)
    for call in ({}, {"member": 1}):
        assert torch.equal(answer(first(x, **call)), answer(model(x, **call)))
        close(answer(second(x, **call)), answer(other(x, **call)))


# ---- two processes ---------------------------------------------------------------------------------------------------


def in_two_processes(run: Callable[..., None], folder: Path) -> dict[int, Any]:
    """What `run(rank, file to meet at, queue)` puts into the queue, by rank."""
    context = torch.multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=run, args=(rank, str(folder / "meet"), results)) for rank in range(2)]
    for process in processes:
        process.start()
    found = dict(results.get(timeout=120) for _ in processes)
    for process in processes:
        process.join(timeout=60)
        assert process.exitcode == 0
    return found


def _train_one_half(rank: int, rendezvous: str, results: Any) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"file://{rendezvous}", rank=rank, world_size=2)
    model = ensemble(convnet(), norm="member").train()
    parallel = nn.parallel.DistributedDataParallel(model)
    mine = slice(rank * 6, rank * 6 + 6)
    member = None if rank == 0 else torch.tensor([1, 1, 0, 0, 1, 0])  # member 2 has no rows here
    loss = F.cross_entropy(parallel(images(12)[mine], member=member), torch.arange(12)[mine] % 3)
    loss.backward()
    results.put((rank, {name: p.grad.numpy() for name, p in model.named_parameters()}))
    torch.distributed.destroy_process_group()


def test_ddp_averages_the_gradients_of_two_processes(tmp_path) -> None:
    gradients = in_two_processes(_train_one_half, tmp_path)
    expected: dict[str, Tensor] = {}
    for rank in range(2):
        model = ensemble(convnet(), norm="member").train()
        mine = slice(rank * 6, rank * 6 + 6)
        member = None if rank == 0 else torch.tensor([1, 1, 0, 0, 1, 0])
        F.cross_entropy(model(images(12)[mine], member=member), torch.arange(12)[mine] % 3).backward()
        for name, parameter in model.named_parameters():
            expected[name] = expected.get(name, torch.zeros(())) + parameter.grad / 2
    for name, tensor in expected.items():
        for rank in range(2):
            close(torch.from_numpy(gradients[rank][name]), tensor)


def _train_a_shard(rank: int, rendezvous: str, results: Any) -> None:
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"file://{rendezvous}", rank=rank, world_size=2)
    model: Any = ensemble(mlp()).train()
    fully_shard(model)
    with pytest.raises(RuntimeError, match=r"register_fsdp_forward_method\(model, 'members'\)"):
        model.predict(rows())
    for name in ("members", "predict"):
        register_fsdp_forward_method(model, name)
    x, y = rows(12)[rank * 6 : rank * 6 + 6], torch.arange(6) % 3
    (F.cross_entropy(model(x), y) + be.mean_loss(F.cross_entropy, model.members(x), y)).backward()
    found = {name: p.grad.full_tensor().numpy() for name, p in model.named_parameters()}
    path = f"{rendezvous}.safetensors"
    changes = (partial(model.add_members, 1, like=0), partial(model.keep_members, [1]), partial(model.extract, 0))
    for call in (partial(model.save, path), partial(model.save_member, 0, path), *changes):
        with pytest.raises(ValueError, match="is sharded over several processes: gather the state_dict"):
            call()
    results.put((rank, (found, model.predict(x).outputs.numpy())))
    torch.distributed.destroy_process_group()


def test_fsdp_averages_the_gradients_of_two_processes(tmp_path) -> None:
    found = in_two_processes(_train_a_shard, tmp_path)
    model, y = ensemble(mlp()).train(), torch.arange(6) % 3
    for rank, x in enumerate(rows(12).chunk(2)):
        loss = F.cross_entropy(model(x), y) + be.mean_loss(F.cross_entropy, model.members(x), y)
        (loss / 2).backward()
        close(torch.from_numpy(found[rank][1]), model.predict(x).outputs)
    for name, parameter in model.named_parameters():
        for rank in range(2):
            close(torch.from_numpy(found[rank][0][name]), parameter.grad)

"""How close an ensemble comes to the limit: the plain network, compiled, on as many rows.

    python benchmarks/speed.py --out speed.json

Every line is a ratio within one run: our time over the plain network's, both compiled and, on a GPU, replayed as CUDA
graphs; medians, after warming up. The denominator of every line is the plain network (or layer) on the same number of
rows, that is members x inputs for inference.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import batchensemble as be
from batchensemble.lab.models import resnet
from batchensemble.lab.provenance import Provenance, hardware
from batchensemble.nn import equation

Work = Callable[[], Any]


def replayed(work: Work, device: torch.device) -> Work:
    """The work as a CUDA graph, after warming up; as it is on a CPU."""
    for _ in range(3):
        work()
    if device.type != "cuda":
        return work
    torch.cuda.synchronize()
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph, stream=stream):
        work()
    return graph.replay


def milliseconds(work: Work, device: torch.device, repeats: int) -> float:
    """Median time of one call."""
    times = []
    for _ in range(repeats + 3):
        if device.type == "cuda":
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            work()
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end))
        else:
            began = time.perf_counter()
            work()
            times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times[3:])


def training(model: nn.Module, rows: int, device: torch.device) -> Work:
    """Loss, gradients and update on random images."""
    model = model.to(device, memory_format=torch.channels_last).train()
    images = torch.randn(rows, 3, 32, 32, device=device).to(memory_format=torch.channels_last)
    labels = torch.randint(10, (rows,), device=device)
    groups = be.parameter_groups(model, lr=1e-3, weight_decay=1e-4)
    optimizer = torch.optim.SGD(groups, lr=1e-3, momentum=0.9, nesterov=True)
    forward = torch.compile(model, dynamic=False)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss = F.cross_entropy(forward(images), labels)
        loss.backward()
        optimizer.step()

    return step


def inference(model: nn.Module, rows: int, device: torch.device) -> Work:
    """Answers for random images, in bfloat16 on a GPU."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    model = model.to(device, dtype, memory_format=torch.channels_last).eval()
    images = torch.randn(rows, 3, 32, 32, device=device, dtype=dtype).to(memory_format=torch.channels_last)
    forward = torch.compile(model, dynamic=False)

    def answer() -> Tensor:
        with torch.no_grad():
            return forward(images)  # type: ignore[no-any-return]

    return answer


def linear(layer: nn.Module, rows: int, width: int, device: torch.device) -> Work:
    """Forward and backward of one layer in bfloat16."""
    layer = layer.to(device, torch.bfloat16)
    x = torch.randn(rows, width, device=device, dtype=torch.bfloat16, requires_grad=True)
    grad = torch.randn(rows, width, device=device, dtype=torch.bfloat16)
    forward = torch.compile(layer, dynamic=False)
    inputs = [x, *layer.parameters()]

    def both_ways() -> Any:
        return torch.autograd.grad(forward(x), inputs, grad)

    return both_ways


def memory(work: Work, device: torch.device) -> float:
    """The most memory that one call takes, in MiB."""
    if device.type != "cuda":
        return float("nan")
    work()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    work()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() / 2**20


def cases(quick: bool, members: int) -> list[tuple[str, Callable[..., Work], Callable[..., Work]]]:
    """Name, the plain network's work, and the ensemble's."""
    depth, width = (8, 1) if quick else (32, 4)
    net = lambda: resnet(depth, width, 10)  # noqa: E731
    found: list[Any] = []
    for inputs in (8,) if quick else (8, 128, 512):
        found.append(
            (
                f"inference, {inputs} inputs",
                lambda d, n=inputs: inference(net(), n * members, d),
                lambda d, n=inputs: inference(be.convert(net(), members), n, d),
            )
        )
    for rows in (16,) if quick else (128, 512, 1024):
        found.append(
            (
                f"training step, {rows} rows",
                lambda d, n=rows: training(net(), n, d),
                lambda d, n=rows: training(be.convert(net(), members), n, d),
            )
        )
    for count, rows, size in [(2, 8, 16)] if quick else [(4, 4096, 1024), (4, 16384, 1024), (32, 256, 512)]:
        found.append(
            (
                f"Linear {count} x {rows} x {size}",
                lambda d, c=count, n=rows, w=size: linear(nn.Linear(w, w), c * n, w, d),
                lambda d, c=count, n=rows, w=size: linear(be.nn.Linear(w, w, members=c), c * n, w, d),
            )
        )
    return found


def measure(make: Callable[..., Work], device: torch.device, repeats: int) -> tuple[float, float]:
    """Milliseconds and MiB, from a clean start."""
    torch.compiler.reset()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    work = make(device)
    for _ in range(3):
        work()
    took = memory(work, device)
    return milliseconds(replayed(work, device), device, repeats), took


def main() -> None:
    """Measure, print, and write a record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("speed.json"))
    parser.add_argument("--quick", action="store_true", help="tiny shapes, to see that it runs")
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--fold-above", type=float, nargs="*", default=[equation.FOLD_ABOVE])
    parser.add_argument("--only", nargs="*", default=[""], help="cases whose names hold one of these")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    began, rows = time.time(), []
    for name, plain, ours in cases(arguments.quick, arguments.members):
        if not any(part in name for part in arguments.only):
            continue
        limit, limit_memory = measure(plain, device, arguments.repeats)
        for threshold in arguments.fold_above:
            equation.FOLD_ABOVE = threshold  # type: ignore[assignment]
            took, used = measure(ours, device, arguments.repeats)
            row = {"case": name, "fold_above": threshold, "limit_ms": limit, "ms": took, "ratio": took / limit}
            row |= {"limit_mib": limit_memory, "mib": used, "memory_ratio": used / limit_memory}
            rows.append(row)
            print(
                f"{name:<28} fold>{threshold:<8g} {limit:9.3f} ms {took:9.3f} ms  {took / limit:5.2f}"
                f"   memory {used / limit_memory:5.2f}",
                flush=True,
            )
    provenance = Provenance.now(hardware(device), since=began)
    arguments.out.write_text(json.dumps({"rows": rows, "provenance": vars(provenance)}, indent=1, default=str))


if __name__ == "__main__":
    main()

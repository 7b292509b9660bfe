"""Milliseconds and memory of one piece of work: warm, the median, on a GPU replayed as a CUDA graph."""

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

Work = Callable[[], Any]
Make = Callable[[bool], Work]
"""Builds the work, networks and inputs included; compiled or not."""
WARM_UP = 3


class Measure(NamedTuple):
    """The median in milliseconds, the most memory in MiB (`None` without a GPU), and how it was run."""

    ms: float
    mib: float | None
    how: str


def measure(make: Make, device: torch.device, repeats: int, compiled: bool) -> Measure:
    """Measures work from a clean start; what cannot be compiled runs as it is written, and `how` says so."""
    if compiled:
        torch.compiler.reset()
    gc.collect()  # what was measured before may hold memory in a circle of references
    if device.type == "cuda":
        torch.cuda.empty_cache()
    else:
        keep_the_heap()
    work, how = _warm(make, compiled)
    took = memory(work, device)
    replay = captured(work, device) if device.type == "cuda" else None
    words = f"{how}, as a CUDA graph" if replay else how
    return Measure(milliseconds(replay or work, device, repeats), took, words)


def keep_the_heap() -> None:
    """Teach glibc to keep what is freed: else every large tensor costs page faults, and the first measured pays most.

    It raises its thresholds to the largest block of at most 32 MiB that was given back.
    """
    torch.ones(31 * 2**20, dtype=torch.uint8)


def milliseconds(work: Work, device: torch.device, repeats: int) -> float:
    """Median time of one call, after some that do not count."""
    timer = _on_gpu if device.type == "cuda" else _on_cpu
    return statistics.median([timer(work) for _ in range(repeats + WARM_UP)][WARM_UP:])


def memory(work: Work, device: torch.device) -> float | None:
    """The most that is allocated during one call, in MiB, weights included; only a GPU counts it."""
    if device.type != "cuda":
        return None
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    work()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) / 2**20


def captured(work: Work, device: torch.device) -> Work | None:
    """The replay of warm work as one CUDA graph; `None` where something in it waits for the GPU."""
    torch.cuda.synchronize(device)
    before, stream, graph = torch.cuda.current_stream(device), torch.cuda.Stream(device), torch.cuda.CUDAGraph()
    stream.wait_stream(before)
    with torch.cuda.stream(stream):
        work()
    before.wait_stream(stream)
    try:
        with torch.cuda.graph(graph, stream=stream):
            work()
    except RuntimeError:
        torch.cuda.set_stream(before)  # a capture that fails does not return to it
        torch.cuda.synchronize(device)
        return None
    return graph.replay


def _warm(make: Make, compiled: bool) -> tuple[Work, str]:
    try:
        work = make(compiled)
        for _ in range(WARM_UP):
            work()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError:  # of the compiler; as it is written, the error is the work's own
        if not compiled:
            raise
        return _warm(make, compiled=False)
    return work, "compiled" if compiled else "eager"


def _on_gpu(work: Work) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end))


def _on_cpu(work: Work) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000

"""Time and memory of a piece of work: the median of warm calls, on a GPU replayed as a CUDA graph."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch

from batchensemble.lab.studies.memory import keep_freed_memory

Work = Callable[[], Any]
Make = Callable[[bool], Work]
"""Builds the work, including networks and inputs; compiled or not."""
WARM_UP = 3


class Measure(NamedTuple):
    """Median time in milliseconds, peak memory in MiB (`None` without a GPU), and how the work was run."""

    ms: float
    mib: float | None
    how: str


def measure(
    makes: Mapping[str, Make],
    device: torch.device,
    repeats: int,
    compiled: bool,
    begin: Callable[[str], object] = lambda name: None,
) -> dict[str, Measure | None]:
    """Measure pieces of work to compare; one that does not fit in memory gives `None`.

    On a GPU they run one after another, each from a clean start. On a CPU they take turns, call by call, so that
    whatever else the machine does affects them alike. What cannot be compiled runs eagerly, and `how` says so.
    `begin` is called with each name when its work is built.
    """
    announced = {name: partial(_announced, begin, name, make) for name, make in makes.items()}
    if device.type == "cpu":
        return _in_turns(announced, repeats, compiled)
    return {name: _alone(make, device, repeats, compiled) for name, make in announced.items()}


def _announced(begin: Callable[[str], object], name: str, make: Make, compiled: bool) -> Work:
    begin(name)
    return make(compiled)


def _in_turns(makes: Mapping[str, Make], repeats: int, compiled: bool) -> dict[str, Measure | None]:
    if compiled:
        torch.compiler.reset()
    keep_freed_memory()  # else the first work measured pays for the growth of the heap
    works = {name: _warm(make, compiled) for name, make in makes.items()}
    rounds = [{name: _on_cpu(work) for name, (work, _) in works.items()} for _ in range(repeats + WARM_UP)][WARM_UP:]
    return {name: Measure(statistics.median(turn[name] for turn in rounds), None, works[name][1]) for name in works}


def _alone(make: Make, device: torch.device, repeats: int, compiled: bool) -> Measure | None:
    if compiled:
        torch.compiler.reset()
    gc.collect()  # earlier work may hold memory in reference cycles
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    others = torch.cuda.memory_allocated(device) / 2**20
    try:
        work, how = _warm(make, compiled)
        took = memory(work, device) - others
    except torch.OutOfMemoryError:
        return None
    replay = captured(work, device)
    words = f"{how}, as a CUDA graph" if replay else how
    times = [_on_gpu(replay or work) for _ in range(repeats + WARM_UP)]
    return Measure(statistics.median(times[WARM_UP:]), took, words)


def memory(work: Work, device: torch.device) -> float:
    """The peak memory allocated on the GPU during one call, in MiB, including weights."""
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    work()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) / 2**20


def captured(work: Work, device: torch.device) -> Work | None:
    """Capture warm work in a CUDA graph and return its replay; `None` if something in it waits for the GPU."""
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
        torch.cuda.set_stream(before)  # a failed capture leaves its own stream current
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
    except RuntimeError:  # from the compiler; an eager run that fails too raises its own error
        if not compiled:
            raise
        return _warm(make, compiled=False)
    return work, ("compiled" if compiled else "eager")


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

"""What members cost a Transformer: in training and in decoding, as ratios within one run.

    python benchmarks/translation.py --out results/speed-translation/MACHINE.json

Training: a step of the base Transformer with four members in its self-attention over the plain network's, on the same
token batch. Decoding: four members with four beams over one network with sixteen, on the same sentences: as many rows.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import batchensemble as be
from batchensemble.lab.models.transformer import SELF_ATTENTION, transformer
from batchensemble.lab.provenance import Provenance, hardware
from batchensemble.lab.studies.translation.batches import Batch
from batchensemble.lab.studies.translation.objective import objective
from batchensemble.lab.studies.translation.recipe import Members
from batchensemble.lab.training.devices import start_fabric
from batchensemble.lab.training.optimizers import adam
from batchensemble.lab.training.step import Replayed, Step

VOCABULARY = 37_000


def seconds(work: Callable[[], Any], device: torch.device, repeats: int) -> float:
    """Median time of one call, after warming up."""
    times = []
    for _ in range(repeats + 3):
        began = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return statistics.median(times[3:])


def made(size: str, members: int | None, device: torch.device) -> Any:
    net = transformer(VOCABULARY, size, longest=512, generator=torch.Generator().manual_seed(0))
    model = net if members is None else be.convert(net, members, include=SELF_ATTENTION, copy=False)
    return model.to(device)


def words(rows: int, length: int, device: torch.device) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(1)).to(device)


def training(size: str, tokens: int, device: str, repeats: int) -> dict[str, float]:
    """Target tokens per second, and the ratio of the times of a step."""
    fabric = start_fabric(device, precision="bf16" if device == "cuda" else "fp32")
    batch = Batch(*(words(tokens // 32, 32, fabric.device) for _ in range(2)))
    times = {}
    for members in (None, 4):
        model = made(size, members, fabric.device).train()
        groups = be.parameter_groups(model, 1e-4, 0.0)
        loss = objective(None if members is None else Members(members), 0.1)
        step = Step(fabric, model, loss, adam(groups, fabric.device), compiled=False)
        take = Replayed(step) if device == "cuda" else step
        times[members] = seconds(lambda take=take: take(batch), fabric.device, repeats)
    speed = {"single_tokens_per_second": tokens / times[None], "members_tokens_per_second": tokens / times[4]}
    return {**speed, "ratio": times[4] / times[None]}


def decoding(size: str, rows: int, length: int, device: str, repeats: int) -> dict[str, float]:
    """Seconds for as many new words, and the ratio."""
    where = torch.device(device)
    source = words(rows, length, where)
    search = {"max_new_tokens": length, "min_new_tokens": length, "attention_mask": torch.ones_like(source)}
    precision = torch.autocast(device, torch.bfloat16, enabled=device == "cuda")
    with precision:
        single, model = made(size, None, where).eval(), made(size, 4, where).eval()
        one = seconds(lambda: single.generate(source, num_beams=16, **search), where, repeats)
        four = seconds(lambda: be.generate(model, source, num_beams=4, **search), where, repeats)
    return {"single_beam_16_seconds": one, "members_beam_4_seconds": four, "ratio": four / one}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--size", default="base")
    parser.add_argument("--tokens", type=int, default=30_720)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=10)
    asked = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    found = {
        "training": training(asked.size, asked.tokens, device, asked.repeats),
        "decoding": decoding(asked.size, asked.rows, 32, device, max(1, asked.repeats // 3)),
        "provenance": vars(Provenance.now(hardware(torch.device(device)))),
    }
    print(json.dumps(found, indent=1))
    if asked.out:
        asked.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

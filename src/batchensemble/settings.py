"""The arguments of `convert` that an ensemble keeps."""

from dataclasses import dataclass

from batchensemble.nn.init import Init
from batchensemble.nn.norm import Norm
from batchensemble.prediction import Combine


@dataclass(frozen=True)
class Settings:
    """The arguments of `convert`, except those that choose layers; see there."""

    init: Init
    norm: Norm
    rank: int
    combine: Combine
    class_dim: int
    output: str | None
    fan_out: str | None
    batch_dim: int
    shared_inputs: tuple[str, ...]

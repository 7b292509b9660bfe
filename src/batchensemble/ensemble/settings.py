"""The arguments of `convert` that an ensemble keeps."""

from dataclasses import dataclass

from batchensemble.nn.init import Init
from batchensemble.nn.layers.norm import Norm
from batchensemble.prediction import Combine, Rule


@dataclass(frozen=True)
class Settings:
    """The arguments of `convert`, except those that choose layers; see there."""

    init: Init
    norm: Norm
    rank: int
    combine: Combine
    class_dim: int
    output: str | int | None
    fan_out: str | None
    batch_dim: int
    shared_inputs: tuple[str, ...]

    @property
    def answer(self) -> str:
        """What `model(x)` is in evaluation mode, in words."""
        if self.combine is None:
            return "none: rows name their members"
        if callable(self.combine):
            return f"what {getattr(self.combine, '__name__', 'your own rule')} returns for all members' outputs"
        return _ANSWERS[self.combine].format(axis=self.class_dim)


_ANSWERS: dict[Rule, str] = {
    "softmax": "log-probabilities over axis {axis}",
    "sigmoid": "log-odds",
    "mean": "the mean of the members' outputs",
    "vote": "logs of the shares of votes over axis {axis}",
}

"""How a translator is trained: everything its weights depend on, as a value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from batchensemble.lab.training.devices import Precision


@dataclass(frozen=True)
class Members:
    """The paper's BatchEnsemble of a Transformer, with options for what the paper leaves open.

    Args:
        count: number of members.
        rows: the sentences a member trains on: its share of the batch (`dealt`), or all of it (`repeated`).
        cross_attention: whether the decoder's attention to the encoder has members as well.
        init: initial values of r and s, as in `be.convert`.
        fast_lr_scale: learning rate of r and s relative to that of the other parameters.
    """

    count: int = 4
    rows: Literal["dealt", "repeated"] = "dealt"
    cross_attention: bool = False
    init: str = "sign"
    fast_lr_scale: float = 1.0


@dataclass(frozen=True)
class Recipe:
    """How a translator is trained; the defaults are the paper's single big Transformer from English to German.

    Args:
        data: name of the corpus.
        members: the BatchEnsemble's members; `None` for one network.
        size: size of the Transformer, see `lab.models.transformer`.
        dropout: dropout of embeddings and of the sublayers' outputs.
        inner_dropout: dropout of attention weights and of rectified units.
        steps: total number of steps.
        epoch: steps between validations; the unit of the log and of checkpoints.
        tokens: tokens per batch on each side, including padding.
        lr: factor of the learning rate `lr * width**-0.5 * min(step**-0.5, step * warmup**-1.5)`.
        warmup: steps until the learning rate starts to fall.
        smoothing: label smoothing.
        bleu_every: epochs between translations of the test set, which is always translated after the last step.
        until_perplexity: validation perplexity at which training stops.
        precision: `fp32` or `bf16`.
    """

    data: str = "wmt16-de"
    members: Members | None = None
    size: str = "big"
    dropout: float = 0.3
    inner_dropout: float = 0.1
    steps: int = 180_000
    epoch: int = 1000
    tokens: int = 30_000
    lr: float = 2.0
    warmup: int = 8000
    smoothing: float = 0.1
    bleu_every: int = 10
    until_perplexity: float | None = None
    precision: Precision = "bf16"

    def __post_init__(self) -> None:
        if self.steps % self.epoch:
            raise ValueError(f"{self.steps} steps are no whole number of epochs of {self.epoch}")

    @property
    def epochs(self) -> int:
        """The number of epochs, each of which ends with a validation."""
        return self.steps // self.epoch

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Build the recipe from JSON."""
        members = settings["members"]
        return cls(**{**settings, "members": None if members is None else Members(**members)})

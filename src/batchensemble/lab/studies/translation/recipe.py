"""How a translator is trained: everything that its weights depend on, as a value."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from batchensemble.lab.training.devices import Precision


@dataclass(frozen=True)
class Members:
    """The paper's BatchEnsemble of a Transformer, and what it leaves open.

    Args:
        count: how many.
        rows: which sentences a member trains on: its share of the batch (`dealt`), or all of it (`repeated`).
        cross_attention: whether the decoder's attention to the encoder has members as well.
        init: of r and s, as in `be.convert`.
        fast_lr_scale: learning rate of r and s relative to the rest.
    """

    count: int = 4
    rows: Literal["dealt", "repeated"] = "dealt"
    cross_attention: bool = False
    init: str = "sign"
    fast_lr_scale: float = 1.0


@dataclass(frozen=True)
class Recipe:
    """How a translator is trained. The defaults are the paper's single big Transformer from English to German.

    Args:
        data: name of the corpus.
        members: of the BatchEnsemble; `None` is one network.
        size: of the Transformer, see `lab.models.transformer`.
        dropout: of embeddings and of what layers add.
        inner_dropout: of attention weights and rectified units.
        steps: in all.
        epoch: steps between two validations; the unit of the log and of checkpoints.
        tokens: of a batch on each side, padding included.
        lr: factor of the learning rate `lr * width**-0.5 * min(step**-0.5, step * warmup**-1.5)`.
        warmup: steps until the learning rate falls.
        smoothing: of labels.
        bleu_every: epochs between two translations of the test set; the last step is always followed by one.
        until_perplexity: of the validation set, at which training stops.
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
        """How many validations there are."""
        return self.steps // self.epoch

    def settings(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """The recipe that settings describe."""
        members = settings["members"]
        return cls(**{**settings, "members": None if members is None else Members(**members)})

"""How a classifier is trained: everything that its weights depend on, as a value."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from batchensemble.lab.methods.ensembles import Method, Single, method_from, settings_of
from batchensemble.lab.training.devices import Precision
from batchensemble.lab.training.schedules import SCHEDULES


@dataclass(frozen=True)
class Recipe:
    """How a classifier is trained. The defaults are the paper's single ResNet-32x4 on CIFAR-10.

    Args:
        method: which ensemble.
        data: name of the image set.
        share: of the training images that is used, the same of every class.
        depth: of the ResNet.
        width: of the ResNet, times 16 filters.
        epochs: passes over the training images.
        batch: rows of a step.
        lr: learning rate.
        schedule: `paper`, `released` or `cosine`.
        weight_decay: as optimisers mean it: twice the `c` of a penalty `c * sum(w^2)`.
        pad: how far pictures are moved in training; zero leaves them, unmirrored, where they are.
        precision: `fp32`, `bf16`, or `fp64` to check arithmetic.
        own_members: with several devices, train on each its own members (with its own batch norm), instead of
            every device some rows of all (with a batch norm over all).
        start: the recipe of a single network, trained first, whose backbone this one begins with: fine-tuning.
    """

    method: Method = field(default_factory=Single)
    data: str = "cifar10"
    share: float = 1.0
    depth: int = 32
    width: int = 4
    epochs: int = 250
    batch: int = 128
    lr: float = 0.1
    schedule: str = "paper"
    weight_decay: float = 1e-4
    pad: int = 4
    precision: Precision = "bf16"
    own_members: bool = False
    start: "Recipe | None" = None

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise ValueError(f"schedule must be one of {', '.join(SCHEDULES)}; got {self.schedule!r}")

    def settings(self) -> dict[str, Any]:
        """As plain JSON; a training from scratch, which most are, says nothing of its start."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "start"}
        start = {"start": self.start.settings()} if self.start else {}
        return {**values, "method": settings_of(self.method), **start}

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """The recipe that settings describe."""
        start = cls.of(settings["start"]) if "start" in settings else None
        return cls(**{**settings, "method": method_from(settings["method"]), "start": start})

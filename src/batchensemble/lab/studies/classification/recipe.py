"""How a classifier is trained: everything its weights depend on, as a value."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from batchensemble.lab.methods.ensembles import Method, Single, method_from, settings_of
from batchensemble.lab.training.devices import Precision
from batchensemble.lab.training.schedules import SCHEDULES


@dataclass(frozen=True)
class Recipe:
    """How a classifier is trained; the defaults are the paper's single ResNet-32x4 on CIFAR-10.

    Args:
        method: the kind of ensemble.
        data: name of the image set.
        share: fraction of the training images to use, the same for every class.
        depth: depth of the ResNet.
        width: width of the ResNet, in multiples of 16 filters.
        epochs: passes over the training images.
        batch: rows per step.
        lr: learning rate.
        schedule: `paper`, `released` or `cosine`.
        weight_decay: the optimiser's weight decay: twice the `c` of a penalty `c * sum(w^2)`.
        pad: largest shift of a training image; zero turns off both shifts and flips.
        precision: `fp32`, `bf16`, or `fp64` to check arithmetic.
        own_members: with several devices, give each its own members (and its own batch norm statistics), instead of
            some rows of all members (and batch norm over all devices).
        start: for fine-tuning: recipe of a single network, trained first, whose backbone this one starts from.
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
        """The recipe as plain JSON; `start` is left out when training from scratch, as most do."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "start"}
        start = {"start": self.start.settings()} if self.start else {}
        return {**values, "method": settings_of(self.method), **start}

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Build the recipe from JSON."""
        start = cls.of(settings["start"]) if "start" in settings else None
        return cls(**{**settings, "method": method_from(settings["method"]), "start": start})

"""Methods by name, and as plain settings and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from .batch_ensemble import BatchEnsemble
from .bn_tuned import BNTuned
from .den import DEN
from .ewc import EWC
from .finetune import Finetune
from .method import Method
from .pnn import PNN
from .rcl import RCL
from .separate import Separate

METHODS: dict[str, type[Any]] = {
    "finetune": Finetune,
    "ewc": EWC,
    "pnn": PNN,
    "bn_tuned": BNTuned,
    "den": DEN,
    "rcl": RCL,
    "separate": Separate,
    "batch_ensemble": BatchEnsemble,
}


def settings_of(method: Method) -> dict[str, Any]:
    """A method as plain settings.

    Example:
        >>> settings_of(BNTuned())
        {'name': 'bn_tuned', 'lr_scale': 1.0}
    """
    names = {kind: name for name, kind in METHODS.items()}
    return {"name": names[type(method)], **asdict(method)}  # type: ignore[call-overload]


def method_from(settings: Mapping[str, Any]) -> Method:
    """The method that settings describe.

    Raises:
        ValueError: there is no method of that name.

    Example:
        >>> method_from({"name": "ewc", "strength": 10.0})
        EWC(strength=10.0, rows=500, labels='sampled')
    """
    fields = dict(settings)
    name = fields.pop("name", None)
    if name not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {name!r}")
    method: Method = METHODS[name](**fields)
    return method

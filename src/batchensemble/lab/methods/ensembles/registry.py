"""Methods by name, and as plain settings and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from .batch_ensemble import BatchEnsemble
from .dropout import Dropout
from .method import Method
from .naive import Naive
from .single import Single

METHODS: dict[str, type[Single | Naive | Dropout | BatchEnsemble]] = {
    "single": Single,
    "naive": Naive,
    "dropout": Dropout,
    "batch_ensemble": BatchEnsemble,
}


def settings_of(method: Method) -> dict[str, Any]:
    """A method as plain settings.

    Example:
        >>> settings_of(Naive(members=2))
        {'name': 'naive', 'members': 2, 'together': False}
    """
    names = {kind: name for name, kind in METHODS.items()}
    return {"name": names[type(method)], **asdict(method)}  # type: ignore[index,call-overload]


def method_from(settings: Mapping[str, Any]) -> Method:
    """The method that settings describe.

    Raises:
        ValueError: there is no method of that name.

    Example:
        >>> method_from({"name": "naive", "members": 2})
        Naive(members=2, together=False)
    """
    fields = dict(settings)
    name = fields.pop("name", None)
    if name not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {name!r}")
    return METHODS[name](**fields)

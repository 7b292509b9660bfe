"""The signature of an ensemble's `forward`: the network's own, plus `member`. Export and Trainer read it."""

import inspect
from types import MethodType
from typing import Any

from torch import nn

from batchensemble.ensemble.compiling import bound_copy


def with_member(signature: inspect.Signature) -> inspect.Signature:
    """A network's signature, plus the keyword `member`.

    Examples:
        >>> str(with_member(inspect.signature(lambda x, **more: x)))
        '(x, *, member=None, **more)'
    """
    if "member" in signature.parameters:
        raise ValueError("the network's forward has an argument called 'member', which an ensemble needs itself")
    parameters = list(signature.parameters.values())
    open_ended = bool(parameters) and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD
    member = inspect.Parameter("member", inspect.Parameter.KEYWORD_ONLY, default=None)
    parameters.insert(len(parameters) - open_ended, member)
    return signature.replace(parameters=parameters)


def forward_with(signature: inspect.Signature, model: nn.Module) -> MethodType:
    """The `forward` of a model's class, bound to this model, with another signature.

    Examples:
        >>> forward = forward_with(inspect.signature(lambda image: image), nn.ReLU())
        >>> str(inspect.signature(forward))
        '(image)'
    """
    bound = bound_copy(forward, model)  # a method, since Accelerate rebinds its function
    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    bound.__func__.__doc__ = type(model).forward.__doc__
    bound.__func__.__signature__ = signature.replace(parameters=[me, *signature.parameters.values()])  # type: ignore[attr-defined]
    return bound


def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
    """Call the `forward` of the module's class."""
    return type(self).forward(self, *args, **kwargs)

"""Methods by name, and as plain settings and back."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from .algorithm import Method
from .alpha_divergence import AlphaDivergence
from .batch_ensemble import BatchEnsemble
from .bayes_by_backprop import BayesByBackprop
from .dropout import Dropout
from .gaussian_process import GaussianProcess
from .greedy import Greedy
from .linear import Linear, Prior
from .naive import Naive
from .network import Training
from .neural_linear import NeuralLinear
from .parameter_noise import ParameterNoise
from .uniform import Uniform

METHODS: dict[str, type[Any]] = {
    "uniform": Uniform,
    "greedy": Greedy,
    "dropout": Dropout,
    "naive": Naive,
    "batch_ensemble": BatchEnsemble,
    "linear": Linear,
    "neural_linear": NeuralLinear,
    "parameter_noise": ParameterNoise,
    "bayes_by_backprop": BayesByBackprop,
    "alpha_divergence": AlphaDivergence,
    "gaussian_process": GaussianProcess,
}
_PARTS: dict[str, Any] = {"prior": lambda part: Prior(**part), "training": lambda part: _training(part)}


def settings_of(method: Method) -> dict[str, Any]:
    """A method as plain settings.

    Example:
        >>> settings_of(Uniform()), settings_of(Linear())["prior"]
        ({'name': 'uniform'}, {'a': 6.0, 'b': 6.0, 'precision': 0.25})
    """
    names = {kind: name for name, kind in METHODS.items()}
    return {"name": names[type(method)], **asdict(method)}  # type: ignore[call-overload]


def method_from(settings: Mapping[str, Any]) -> Method:
    """The method that settings describe.

    Raises:
        ValueError: there is no method of that name, or it has no such setting.

    Example:
        >>> method_from(settings_of(Naive(members=8))) == Naive(members=8)
        True
    """
    values = dict(settings)
    name = values.pop("name", None)
    if name not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {name!r}")
    known = [field.name for field in fields(METHODS[name])]
    if unknown := sorted(set(values) - set(known)):
        raise ValueError(f"{name} has the settings {', '.join(known) or 'none'}; got {', '.join(unknown)}")
    method: Method = METHODS[name](**{key: _PARTS.get(key, _same)(value) for key, value in values.items()})
    return method


def _same(value: Any) -> Any:
    return value


def _training(part: Mapping[str, Any]) -> Training:
    return Training(**{**part, "hidden": tuple(part.get("hidden", Training.hidden))})

"""What was asked (`Run`) and what came out (`Record`), as immutable values.

A run is named by its content, so two experiments that ask for the same run share one record.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

from numpy.typing import NDArray

from batchensemble.lab.provenance import Provenance

Scale = Literal["smoke", "small", "short", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)


@dataclass(frozen=True)
class Run:
    """One piece of work: everything its result depends on, and nothing else.

    Args:
        study: the name of the study, the kind of work.
        settings: everything the study needs to know: its `Settings` or a mapping, kept as plain JSON.
        scale: `smoke`, `small`, `short` or `paper`; part of the identity, so no small run can pass for the paper's.
        seed: seeds every random choice in the run.

    Examples:
        >>> run = Run("classification", {"data": "digits", "width": (1, 2)}, "smoke", seed=0)
        >>> run.settings["width"], len(run.key)
        ([1, 2], 12)
        >>> run == Run("classification", {"width": [1, 2], "data": "digits"}, "smoke", seed=0)
        True
    """

    study: str
    settings: Any
    scale: Scale
    seed: int = 0

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise ValueError(f"scale must be one of {', '.join(SCALES)}; got {self.scale!r}")
        object.__setattr__(self, "settings", plain(self.settings))

    @cached_property
    def key(self) -> str:
        """The first twelve hexadecimal digits of the content's SHA-256."""
        return content_key(asdict(self))

    @property
    def name(self) -> str:
        """The path of its files without the extension: `smoke/classification-0123456789ab`."""
        return f"{self.scale}/{self.study}-{self.key}"

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True)
class Record:
    """The outcome of a run: its numbers, how they were obtained, and the arrays that figures need.

    Args:
        run: what was asked.
        metrics: JSON values; numbers that are not finite become `None`.
        provenance: hardware, versions, commit and time.
        arrays: stored next to the record in one `.npz`, floating point as float16; loaded on first use.
    """

    run: Run
    metrics: Mapping[str, Any]
    provenance: Provenance
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "metrics", plain(self.metrics))

    def untimed(self) -> "Record":
        """A copy without its timings, which mean nothing if other work shared the machine.

        Examples:
            >>> metrics = {"accuracy": 0.5, "training_seconds": 60.0, "tokens_per_second": 9.0}
            >>> Record(Run("translation", {}, "smoke"), metrics, Provenance.now()).untimed().metrics
            {'accuracy': 0.5}
        """
        kept = {name: value for name, value in self.metrics.items() if "second" not in name}
        return replace(self, metrics=kept)


@dataclass(frozen=True)
class Result:
    """A record with its place in an experiment; `labels` is, say, `{"method": "Single", "data": "CIFAR-10"}`."""

    labels: Mapping[str, str]
    record: Record


@dataclass(frozen=True)
class Published:
    """A number from the paper, printed beside ours with the same labels and the same metric."""

    labels: Mapping[str, str]
    metric: str
    value: float
    spread: float | None = None


def plain(value: Any) -> Any:
    """Convert a value to what a round trip through JSON would give; NaN and infinities become `None`.

    A dataclass becomes a mapping of its fields, or what its own method `settings` returns: a recipe, say, stores its
    method with a name.

    Examples:
        >>> plain({"a": (1, 0.5), "b": float("nan")})
        {'a': [1, 0.5], 'b': None}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return plain(value.settings() if hasattr(value, "settings") else _fields(value))
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy and torch, scalars and arrays
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"expected what JSON can hold, got {type(value).__name__}: {value!r}")


def tupled(value: Any) -> Any:
    """The tuples again that a round trip through JSON has made lists, however deep.

    Examples:
        >>> tupled({"layers": [[4, 16, 8]], "network": "mlp"})
        {'layers': ((4, 16, 8),), 'network': 'mlp'}
    """
    if isinstance(value, Mapping):
        return {name: tupled(item) for name, item in value.items()}
    return tuple(map(tupled, value)) if isinstance(value, list) else value


def _fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, as they are."""
    return {one.name: getattr(value, one.name) for one in fields(value)}


def content_key(content: Any) -> str:
    """Twelve hexadecimal digits that identify a content, whatever the order of its keys.

    Examples:
        >>> content_key({"a": 1, "b": 2}) == content_key({"b": 2, "a": 1})
        True
    """
    text = json.dumps(plain(content), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]

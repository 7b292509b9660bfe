"""Converts methods to plain settings and back, by name, for every family of methods."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Generic, TypeVar

Method = TypeVar("Method")


@dataclass(frozen=True)
class Registry(Generic[Method]):
    """The methods of a family: frozen dataclasses whose fields are settings.

    Args:
        kinds: the methods' classes by name.
        parts: fields that are dataclasses themselves, with their types.

    Examples:
        >>> @dataclass(frozen=True)
        ... class Naive:
        ...     members: int = 4
        >>> family: Registry[Naive] = Registry({"naive": Naive})
        >>> family.settings_of(Naive(8)), family.method_from({"name": "naive"})
        ({'name': 'naive', 'members': 8}, Naive(members=4))
    """

    kinds: Mapping[str, type[Method]]
    parts: Mapping[str, type] = field(default_factory=dict)

    def settings_of(self, method: Method) -> dict[str, Any]:
        """A method as plain settings.

        Raises:
            ValueError: the method's class has no name here.
        """
        names = {kind: name for name, kind in self.kinds.items()}
        if type(method) not in names:
            kind = type(method).__name__
            raise ValueError(f"{kind} is none of {', '.join(self.kinds)}: METHODS['its name'] = {kind} adds it")
        return {"name": names[type(method)], **asdict(method)}  # type: ignore[call-overload]

    def method_from(self, settings: Mapping[str, Any]) -> Method:
        """Build a method from settings.

        Raises:
            ValueError: there is no method of that name, or it has no such setting.
        """
        values = dict(settings)
        name = values.pop("name", None)
        if name not in self.kinds:
            raise ValueError(f"method must be one of {', '.join(self.kinds)}; got {name!r}")
        known = [field.name for field in fields(self.kinds[name])]  # type: ignore[arg-type]
        if unknown := sorted(set(values) - set(known)):
            raise ValueError(f"{name} has the settings {', '.join(known) or 'none'}; got {', '.join(unknown)}")
        made = {key: self.parts[key](**value) if key in self.parts else value for key, value in values.items()}
        return self.kinds[name](**made)

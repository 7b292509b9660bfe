"""Packages that only some parts need, and which extra of this one brings them."""

from importlib.util import find_spec


def require(what: str, extra: str, *packages: str) -> None:
    """Refuse to begin what could not be ended.

    Args:
        what: needs the packages.
        extra: of this package, which installs them.
        *packages: by the names of their modules.

    Raises:
        ModuleNotFoundError: one is not here; says what to install.

    Examples:
        >>> require("export_onnx", "onnx", "torch")
    """
    if missing := [name for name in packages if find_spec(name) is None]:
        raise ModuleNotFoundError(f"{what} needs {', '.join(missing)}: pip install 'batchensemble[{extra}]'")

"""Packages that only some parts need, and the extras of this one that install them."""

from importlib.util import find_spec


def require(what: str, extra: str, *packages: str) -> None:
    """Refuse to start what could not be finished: check that optional packages are installed.

    Args:
        what: what needs the packages.
        extra: the extra of this package that installs them.
        *packages: names of their modules.

    Raises:
        ModuleNotFoundError: a package is missing; the message says what to install.

    Examples:
        >>> require("export_onnx", "onnx", "torch")
    """
    if missing := [name for name in packages if find_spec(name) is None]:
        raise ModuleNotFoundError(f"{what} needs {', '.join(missing)}: pip install 'batchensemble[{extra}]'")

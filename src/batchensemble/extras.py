"""Packages that only some parts need, and the extras of this one that install them."""

from importlib.util import find_spec


def how_to_install(extra: str) -> str:
    """Say how to get an extra, in words that are right wherever this package came from.

    Examples:
        >>> how_to_install("onnx")
        "install batchensemble with its extra [onnx], in a clone by pip install '.[onnx]'"
    """
    return f"install batchensemble with its extra [{extra}], in a clone by pip install '.[{extra}]'"


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
        raise ModuleNotFoundError(f"{what} needs {', '.join(missing)}: {how_to_install(extra)}")

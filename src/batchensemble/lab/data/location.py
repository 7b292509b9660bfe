"""Where data is kept on this machine."""

import os
from pathlib import Path

VARIABLE = "BATCHENSEMBLE_DATA"


def data_root(root: str | Path | None = None) -> Path:
    """The folder of the data sets: `root`, else `$BATCHENSEMBLE_DATA`, else the platform's cache.

    Examples:
        >>> data_root("my/data").name
        'data'
    """
    chosen = root or os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    import pooch

    return Path(pooch.os_cache("batchensemble"))

"""Memory that is given back and asked for again costs time."""

import ctypes

_TRIM, _MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of <malloc.h>
_MOST, _ALLOWED = 2**30, 2**25  # bytes; older releases of glibc refuse blocks of more than 32 MiB


def keep_freed_memory() -> bool:
    """Asks the C library to keep freed blocks up to a gibibyte, instead of handing them back to the system.

    glibc returns a freed tensor of some megabytes at once, and the next one pays a page fault for every four kilobytes.
    Many small steps on such tensors take half the time when it does not (measured on two cores); and of works that are
    timed side by side, the first pays for all. Where the C library is another one, nothing happens.

    Returns:
        Whether it was understood.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    # The blocks first: glibc stops adapting both to what is freed as soon as it is told one.
    return any(mallopt(_MMAP, size) for size in (_MOST, _ALLOWED)) and bool(mallopt(_TRIM, _MOST))

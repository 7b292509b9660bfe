"""Freed memory is kept rather than returned to the system, since asking for it again costs time."""

import ctypes

_TRIM, _MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of <malloc.h>
_MOST, _ALLOWED = 2**30, 2**25  # bytes; older releases of glibc refuse blocks of more than 32 MiB


def keep_freed_memory() -> bool:
    """Ask the C library to keep freed blocks up to a gibibyte instead of returning them to the system.

    glibc returns a freed tensor of a few megabytes at once, and the next one pays a page fault for every four
    kilobytes. Many small steps on such tensors take half the time if it does not (measured on two cores); and of works
    timed side by side, the first pays for all. With another C library, nothing happens.

    Returns:
        Whether the C library accepted.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    # The size of blocks first: once either is set, glibc stops adapting both to what is freed.
    return any(mallopt(_MMAP, size) for size in (_MOST, _ALLOWED)) and bool(mallopt(_TRIM, _MOST))

"""Memory that is given back and asked for again costs time."""

import ctypes

_TRIM, _MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of <malloc.h>


def keep_freed_memory(blocks: int = 2**30) -> bool:
    """Asks the C library to keep freed blocks up to this size, instead of handing them back to the system.

    glibc returns a freed tensor of some megabytes at once, and the next one pays a page fault for every four kilobytes.
    Many small steps on such tensors take half the time when it does not (measured on two cores). Where the C library
    is another one, nothing happens.

    Returns:
        Whether it was understood.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return all(mallopt(option, blocks) for option in (_TRIM, _MMAP))

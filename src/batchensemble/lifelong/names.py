"""Names of tasks: each becomes part of a file's name, on any disk."""

import re
from collections.abc import Iterable

LONGEST = 128  # bytes of a task's name, which becomes part of a file's name


def checked_name(name: str | int) -> str:
    """A task's name as text, if it is fit for a file's name.

    Examples:
        >>> checked_name("birds"), checked_name(7)
        ('birds', '7')
    """
    text = str(name)
    if not re.fullmatch(r"[\w.-]+", text) or len(text.encode()) > LONGEST:
        raise ValueError(
            f"a task's name is made of letters, digits, '_', '-' and '.', at most {LONGEST} bytes of them, got {text!r}"
        )
    return text


def check_new(names: Iterable[str], known: Iterable[str], instead: str) -> None:
    """Refuse tasks' names that are taken, or that some disks (those of macOS and Windows) cannot tell from others.

    Args:
        names: names of the new tasks.
        known: names of the others.
        instead: what to do if one is taken.

    Examples:
        >>> check_new(["Birds"], ["cats", "birds"], "choose another name")
        Traceback (most recent call last):
        ValueError: task 'Birds' would share a file with task 'birds' on disks that ignore case: choose another name
    """
    taken = {name.casefold(): name for name in known}
    for name in names:
        other = taken.get(name.casefold())
        if name == other:
            raise ValueError(f"task '{name}' is known already: {instead}")
        if other is not None:
            raise ValueError(
                f"task '{name}' would share a file with task '{other}' on disks that ignore case: {instead}"
            )
        taken[name.casefold()] = name

"""An append-only file of events: what was appended is on the disk, and a torn end does not count."""

import os
import struct
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NoReturn

import safetensors.torch
from torch import Tensor

from batchensemble.disk import sync_folder
from batchensemble.locks import release, take

Event = dict[str, Tensor]
"""Tensors by name, as one safetensors block."""

_HEAD = struct.Struct("<III")  # length of the block, its checksum, and the checksum of these two
_PAIR = struct.Struct("<II")


class Journal:
    """Events in a file, each after a head with its length and checksum.

    `append` returns when the event is on the disk. A process killed while appending leaves a torn end, which is cut off
    when the file is opened again; damage anywhere else is an error.

    Args:
        path: the file; created if it does not exist, and locked for this process alone.

    Examples:
        >>> import tempfile, torch
        >>> path = Path(tempfile.mkdtemp(), "journal")
        >>> with_event = Journal(path)
        >>> with_event.append({"ids": torch.tensor([3])})
        >>> with_event.close()
        >>> [event["ids"].tolist() for event in Journal(path).events()]
        [[3]]
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        is_new = not path.exists()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o644)
        try:
            take(self._file, f"another process, or another sampler of this one, writes to {path}")
        except BaseException:
            os.close(self._file)
            raise
        self._closing = weakref.finalize(self, _let_go, self._file, os.getpid())  # even of a journal nobody closed
        if is_new:
            sync_folder(path.parent)
        self._end = sum(_HEAD.size + len(block) for block in self._blocks())  # of the last complete event
        os.truncate(self._file, self._end)

    def __bool__(self) -> bool:
        return self._end > 0

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{self.path} is written by one sampler alone, so a sampler with a folder can be neither copied nor "
            "pickled: write it to a file with save(path), and load that"
        )

    def events(self) -> Iterator[Event]:
        """All events, from the first on."""
        return map(safetensors.torch.load, self._blocks())

    def _blocks(self) -> Iterator[bytes]:
        """The complete events up to the end, which may be torn.

        Raises:
            ValueError: there is damage before the end.
        """
        size = self.path.stat().st_size
        with self.path.open("rb") as file:
            while len(head := file.read(_HEAD.size)) == _HEAD.size:
                at = file.tell() - _HEAD.size
                length, checksum, own = _HEAD.unpack(head)
                if zlib.crc32(_PAIR.pack(length, checksum)) != own:
                    if not any(head) and _only_zeros(file):  # pages that a power cut left empty
                        return
                    raise ValueError(f"{self.path} is damaged at byte {at}: the head of an event is not one")
                block = file.read(length)
                if zlib.crc32(block) != checksum:
                    if file.tell() == size:
                        return
                    raise ValueError(f"{self.path} is damaged at byte {at}: an event is not what was written")
                yield block

    def append(self, event: Event) -> None:
        """Write an event and wait until the disk has it; if that fails, the file is as it was before."""
        block = safetensors.torch.save({name: tensor.contiguous() for name, tensor in event.items()})
        pair = _PAIR.pack(len(block), zlib.crc32(block))
        try:
            _write_all(self._file, pair + struct.pack("<I", zlib.crc32(pair)) + block)
            os.fsync(self._file)
        except BaseException:  # an interrupt, too: what was not acknowledged must not stay
            os.truncate(self._file, self._end)
            raise
        self._end += _HEAD.size + len(block)

    def close(self) -> None:
        """Release the file."""
        self._closing()


def _let_go(file: int, taker: int) -> None:
    release(file, taker)
    os.close(file)


def _only_zeros(file: BinaryIO) -> bool:
    return not any(any(part) for part in iter(lambda: file.read(1 << 16), b""))


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]

"""safetensors files: tensors and a JSON header, written beside and renamed, so that a file is complete or absent."""

import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from batchensemble.disk import check_folder, version_of, written_whole
from batchensemble.nn.conversion.changed import refuse_sharded
from batchensemble.nn.layers.member import MemberModule

FORMAT = 1
_KEY, _CHECKSUM = "batchensemble", "checksum"


def write(path: str | Path, kind: str, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    """Write one of our files, completely or not at all.

    Args:
        path: where to write; an existing file is replaced, a link too: what it points to stays.
        kind: what it holds: "ensemble", "member", "task", "shared", "sampler" or "weights" (a sampler's).
        tensors: what to store; NaN in any of them is refused.
        header: what belongs to them, as JSON values.

    Raises:
        FileNotFoundError: there is no folder to write into.
        ValueError: a tensor holds NaN, is complex128 or sparse, or is sharded over several processes.
        OSError: the disk is full or cannot be written to.
    """
    path = Path(path)
    check_folder(path)
    for name, tensor in tensors.items():
        _refuse_what_no_file_holds(name, tensor)
        if tensor.is_floating_point() and bool(tensor.isnan().any()):
            raise ValueError(f"{name} holds NaN, and a file of it would be of no use: nothing was written to {path}")
        if tensor.dtype == torch.complex128:
            raise ValueError(f"{name} is complex128, and safetensors has complex64 only: nothing was written to {path}")
    text, apart = json.dumps({"format": FORMAT, "kind": kind, **header}), _apart(tensors)
    metadata = {_KEY: text, _CHECKSUM: _checksum(text, apart)}
    with written_whole(path) as beside:
        beside.touch()
        mode = beside.stat().st_mode  # what the user's umask gives; safetensors would let nobody else read it
        save_file(apart, beside, metadata)
        beside.chmod(mode)


def _apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors on the CPU, none of them a view of another, which safetensors refuses."""
    memory: set[int] = set()
    apart = {}
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().resolve_conj().contiguous()
        place = plain.untyped_storage().data_ptr()
        apart[name] = plain.clone() if place in memory else plain
        memory.add(place)
    return apart


def read(path: str | Path, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the tensors and the header of one of our files; a foreign or damaged file raises a `ValueError`.

    Header and tensors are read by opening the file twice: if another process replaces it in between, they are read
    again.
    """
    path = Path(path)
    while True:
        before = version_of(path)
        try:
            return _read(path, kind)
        except (ValueError, RuntimeError):  # the second one is torch's, about a file that is shorter now, or gone
            if version_of(path) == before:
                raise


def _read(path: Path, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except SafetensorError as error:
        if is_zipfile(path):
            raise ValueError(
                f"{path} was written by torch.save: read it with torch.load; a state goes into model.load_state_dict"
            ) from error
        raise ValueError(f"{path} is damaged, or not a safetensors file: {error}") from error
    if _KEY not in metadata:
        raise ValueError(f"{path} is a safetensors file, but was not written by batchensemble")
    header = _header(path, metadata[_KEY])
    if header["kind"] != kind:
        raise ValueError(f"{path} holds one {header['kind']}, expected one {kind}")
    if metadata.get(_CHECKSUM) != _checksum(metadata[_KEY], tensors):
        raise ValueError(f"{path} is damaged: it does not hold what was written to it")
    return tensors, header


def _checksum(header: str, tensors: Mapping[str, Tensor]) -> str:
    """Eight hexadecimal digits for all that a file holds: safetensors would read a lost block as zeros."""
    found = zlib.crc32(header.encode())
    for name, tensor in sorted(tensors.items()):
        found = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), found)
        found = zlib.crc32(raw_bytes(tensor), found)
    return f"{found:08x}"


def _header(path: Path, text: str) -> dict[str, Any]:
    try:
        header = json.loads(text)
        version, _ = header["format"], header["kind"]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is damaged: its header is not one of ours ({error!r})") from error
    if version != FORMAT:
        raise ValueError(
            f"{path} has format {version}, this version reads {FORMAT}: read it with the release that wrote it"
        )
    return header  # type: ignore[no-any-return]


def check_fit(path: str | Path, found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Refuse a file whose tensors have other names, shapes or dtypes than the network's, naming the first such one."""
    for name in sorted(found.keys() | expected.keys()):
        if name not in found or name not in expected:
            where = "the file" if name in found else "the network"
            raise ValueError(f"{path} does not fit this network: only {where} has {name}")
        theirs, ours = found[name], expected[name]
        if theirs.shape != ours.shape:
            raise ValueError(
                f"{path} does not fit this network: {name} is {tuple(theirs.shape)} in the file and "
                f"{tuple(ours.shape)} in the network"
            )
        if theirs.dtype != ours.dtype:
            raise ValueError(
                f"{path} does not fit this network: {name} is {theirs.dtype} in the file and {ours.dtype} in the "
                f"network. Read it into a network of the file's dtype, net.to({theirs.dtype}), and cast afterwards"
            )


def check_shared(path: str | Path, theirs: Mapping[str, str], ours: Mapping[str, str]) -> None:
    """Refuse a member's or task's file that was saved with other shared weights, naming the first layer that differs.

    Args:
        path: the file.
        theirs: fingerprints in the file.
        ours: those of the network here.
    """
    for layer in [*ours, *theirs]:
        if ours.get(layer) != theirs.get(layer):
            raise ValueError(
                f"{path} was saved with other shared weights: they differ first in layer '{layer}'. It only fits the "
                "network that it was trained in, with the same weights in the same dtype: cast afterwards."
            )


def distinct_state(net: nn.Module) -> dict[str, Tensor]:
    """The state of a network, with every tied tensor once, under its first name."""
    seen: set[int] = set()
    state = {}
    for name, tensor in net.state_dict(keep_vars=True).items():
        if not isinstance(tensor, Tensor):
            raise ValueError(
                f"{name} (from get_extra_state) is a {type(tensor).__name__}, and a safetensors file holds tensors "
                "only: torch.save(model.state_dict(), path) keeps both"
            )
        if id(tensor) not in seen:
            seen.add(id(tensor))
            state[name] = tensor.detach()
    return state


def fingerprints(net: nn.Module) -> dict[str, str]:
    """Hash, layer by layer, everything saved that members share: weights, plain layers, norm statistics.

    Buffers that torch does not save (`persistent=False`) are left out. Some are caches, which change with use; others
    are tables that a constructor computes, such as rotary frequencies, whose last bits depend on the device. Keeping
    them the same is up to the code that makes the network.

    Examples:
        >>> list(fingerprints(nn.Sequential(nn.Linear(2, 3), nn.ReLU())))
        ['0']
    """
    found = {}
    for name, module in net.named_modules():
        shared = _shared_tensors(module)
        if shared:
            digest = hashlib.sha256()
            for key, tensor in shared.items():
                _refuse_what_no_file_holds(f"{name}.{key}".removeprefix("."), tensor)
                digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
                digest.update(raw_bytes(tensor))
            found[name] = digest.hexdigest()[:16]
    return found


def _refuse_what_no_file_holds(name: str, tensor: Tensor) -> None:
    refuse_sharded(name, tensor)
    if tensor.layout != torch.strided:
        raise ValueError(
            f"{name} is sparse ({tensor.layout}), and safetensors has dense tensors only: register it with "
            "persistent=False, and the code that makes the network makes it again"
        )


def _shared_tensors(module: nn.Module) -> dict[str, Tensor]:
    """A module's own tensors that all members share and that answers depend on."""
    stacked = module.stacked if isinstance(module, MemberModule) else ()
    own = {**module._parameters, **module._buffers}
    transient = {*module._non_persistent_buffers_set, "num_batches_tracked", *stacked}
    return {name: tensor for name, tensor in own.items() if tensor is not None and name not in transient}


def raw_bytes(tensor: Tensor) -> memoryview:
    """A tensor's bytes as they lie in memory, even for dtypes that NumPy does not have; no copy if it is on the CPU.

    Examples:
        >>> raw_bytes(torch.ones(2, dtype=torch.bfloat16)).hex()
        '803f803f'
    """
    plain = tensor.detach().cpu().resolve_conj().contiguous()
    flat = plain.as_strided((plain.numel(),), (1,))  # a lone number is contiguous with any stride, and stays so
    return flat.view(torch.uint8).numpy().data

"""The bytes of a file: which are written, and that it is refused by its name if any of them is another."""

import re
from pathlib import Path

import pytest
import torch
from ensembles import ensemble, mlp
from torch import nn

import batchensemble as be
from batchensemble import files


def test_every_byte_counts(tmp_path: Path) -> None:
    path = tmp_path / "member"
    ensemble().save_member(1, path)
    whole = path.read_bytes()
    for place, byte in enumerate(whole):
        path.write_bytes(whole[:place] + bytes([byte ^ 1]) + whole[place + 1 :])
        with pytest.raises(ValueError, match=f"^{re.escape(str(path))} "):
            files.read(path, "member")
    path.write_bytes(whole)
    files.read(path, "member")


def test_a_lost_block_is_no_weights(tmp_path: Path) -> None:
    path = tmp_path / "ensemble"
    ensemble().save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-64] + bytes(64))  # as after a power cut, or an unfinished download
    with pytest.raises(ValueError, match="is damaged: it does not hold what was written to it"):
        be.load(path, mlp())


def test_the_bytes_of_a_tensor_are_not_copied() -> None:
    tensor = torch.zeros(3)
    found = files.raw_bytes(tensor)
    tensor.fill_(1)
    assert bytes(found) == bytes(files.raw_bytes(torch.ones(3))), "or checksums would need room for the largest one"


def test_a_lone_number_is_saved_whatever_its_stride(tmp_path: Path) -> None:
    path, net = tmp_path / "ensemble", nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    model = be.convert(net, members=1, norm="member")
    assert model.net[1].num_batches_tracked.stride() == (0,)
    model.save(path)
    assert len(be.load(path, net)) == 1


def test_a_conjugate_that_torch_has_not_computed_yet_is_saved_as_what_it_stands_for(tmp_path: Path) -> None:
    path, filters = tmp_path / "member", torch.tensor([1 + 2j, 3 - 4j]).conj()
    files.write(path, "member", {"filters": filters}, {})
    tensors, _ = files.read(path, "member")
    assert torch.equal(tensors["filters"], torch.tensor([1 - 2j, 3 + 4j]))
    layer = nn.Module()
    layer.register_buffer("filters", filters)
    computed = nn.Module()
    computed.register_buffer("filters", filters.resolve_conj())
    assert files.fingerprints(layer) == files.fingerprints(computed)


def test_the_same_bytes_in_another_shape_or_type_are_other_weights() -> None:
    layers = [nn.Linear(3, 2).half(), nn.Linear(2, 3, bias=False).half(), nn.Linear(3, 2, bias=False).half()]
    layers.append(nn.Linear(3, 2, bias=False).bfloat16())
    for layer in layers:
        nn.init.zeros_(layer.weight)
    assert len({files.fingerprints(layer)[""] for layer in layers}) == 4

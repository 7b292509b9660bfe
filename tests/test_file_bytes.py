"""A file that does not hold what was written to it is refused by its name, wherever the damage is."""

import re
from pathlib import Path

import pytest
from ensembles import ensemble, mlp

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

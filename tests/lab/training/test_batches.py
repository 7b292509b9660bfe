"""Who gets which rows."""

import pytest
import torch

from batchensemble.lab.training.batches import rank_rows


@pytest.mark.parametrize("own_members", [False, True])
def test_processes_share_a_batch_without_loss_or_overlap(own_members):
    rows = torch.arange(24)
    parts = [rows[rank_rows(24, rank, 3, own_members=own_members)] for rank in range(3)]
    assert torch.cat(parts).sort().values.tolist() == list(range(24))


def test_own_members_means_each_process_has_a_block_of_members():
    members = torch.arange(128) * 4 // 128
    assert members[rank_rows(128, 1, 2, own_members=True)].unique().tolist() == [2, 3]
    assert members[rank_rows(128, 1, 2)].unique().tolist() == [0, 1, 2, 3]


def test_unequal_shares_are_refused():
    with pytest.raises(ValueError, match="129 rows cannot be shared equally by 2 processes"):
        rank_rows(129, 0, 2)

import pytest
import torch

from batchensemble.lab.models import lenet


@pytest.mark.parametrize(("channels", "parameters"), [(1, 61_706), (3, 62_006)])
def test_lenet5_has_the_classic_size(channels, parameters):
    net = lenet(10, channels=channels)
    assert sum(p.numel() for p in net.parameters()) == parameters
    assert net(torch.zeros(2, channels, 32, 32)).shape == (2, 10)


def test_seed_decides_the_weights():
    nets = [lenet(generator=torch.Generator().manual_seed(s)) for s in (0, 0, 1)]
    assert torch.equal(nets[0][0].weight, nets[1][0].weight)
    assert not torch.equal(nets[0][0].weight, nets[2][0].weight)

import pytest
import torch

from batchensemble.lab.models import lenet


@pytest.mark.parametrize(("channels", "size", "parameters"), [(1, 28, 61_706), (1, 32, 61_706), (3, 32, 62_006)])
def test_lenet5_has_the_classic_size(channels, size, parameters):
    net = lenet(10, channels=channels, size=size)
    assert sum(p.numel() for p in net.parameters()) == parameters
    assert net(torch.zeros(2, channels, size, size)).shape == (2, 10)


def test_another_size_is_refused():
    with pytest.raises(ValueError, match="28 or 32, got 64"):
        lenet(size=64)


def test_seed_decides_the_weights():
    nets = [lenet(generator=torch.Generator().manual_seed(s)) for s in (0, 0, 1)]
    assert torch.equal(nets[0][0].weight, nets[1][0].weight)
    assert not torch.equal(nets[0][0].weight, nets[2][0].weight)

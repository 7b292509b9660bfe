"""The ways to build an ensemble that are timed: ours, independent networks, other libraries."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from torch import Tensor, nn

import batchensemble as be
from batchensemble.extras import how_to_install
from batchensemble.lab.methods.ensembles.naive import Stacked
from batchensemble.lab.studies.speed.networks import Network
from batchensemble.prediction import combine_outputs

OURS = "BatchEnsemble"
OWN_NORMS = f"{OURS}, norm per member"
ONE_BY_ONE = "naive, one by one"


@dataclass(frozen=True)
class Way:
    """Builds the models of an ensemble: one model that holds all members, or one model for each.

    Args:
        build: builds them from a network and a number of members. In training, a model takes N rows and returns
            logits for N rows split over the members, or for N rows of every member; in evaluation, one answer per row.
        package: module name of the package that must be installed.
        misfit: says why the way does not suit a network; empty if it does.
    """

    build: Callable[[Network, int], list[nn.Module]]
    package: str = ""
    misfit: Callable[[Network], str] = lambda network: ""

    def why_not(self, network: Network) -> str:
        """Say why this way cannot be measured here; empty if it can."""
        if self.package and find_spec(self.package) is None:
            return f"not installed; {how_to_install('bench')}"
        return self.misfit(network)


class AtOnce(nn.Module):
    """Independent networks in one pass, with `torch.func.vmap`."""

    def __init__(self, networks: list[nn.Module]) -> None:
        super().__init__()
        self.members, self.stacked = len(networks), Stacked(networks)

    def forward(self, x: Tensor) -> Tensor:
        """All members' logits as rows in training, otherwise one answer per row."""
        outputs = self.stacked(x.expand(self.members, *x.shape))
        return outputs.flatten(0, 1) if self.training else combine_outputs(outputs, "softmax")


class Repeated(nn.Module):
    """A network of torch-uncertainty's layers: the members' rows follow one another in the batch."""

    def __init__(self, net: nn.Module, members: int) -> None:
        super().__init__()
        self.net, self.members = net, members

    def forward(self, x: Tensor) -> Tensor:
        """Split the rows over the members in training; otherwise every member answers every row."""
        if self.training:
            return self.net(x)  # type: ignore[no-any-return]
        outputs: Tensor = self.net(x.repeat(self.members, *[1] * (x.ndim - 1)))
        return combine_outputs(outputs.unflatten(0, (self.members, -1)), "softmax")


class MembersSecond(nn.Module):
    """A network of tabm's layers, which take `(N, members, features)`."""

    def __init__(self, net: nn.Module, members: int) -> None:
        super().__init__()
        self.net, self.members = net, members

    def forward(self, x: Tensor) -> Tensor:
        """Split the rows over the members in training; otherwise every member answers every row."""
        if self.training:
            return self.net(x.unflatten(0, (-1, self.members))).flatten(0, 1)  # type: ignore[no-any-return]
        outputs = self.net(x[:, None].expand(-1, self.members, -1))
        return combine_outputs(outputs.transpose(0, 1), "softmax")


def _with_torch_uncertainty(network: Network, members: int) -> list[nn.Module]:
    layers, net = import_module("torch_uncertainty.layers.batch_ensemble"), network.make()
    for parent in list(net.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Conv2d):
                setattr(parent, name, layers.BatchConv2d.from_conv2d(child, members))
            elif isinstance(child, nn.Linear):
                setattr(parent, name, layers.BatchLinear.from_linear(child, members))
    return [Repeated(net, members)]


def _with_tabm(network: Network, members: int) -> list[nn.Module]:
    layers = [layer for layer in network.make().children() if not isinstance(layer, nn.Flatten)]
    net = nn.Sequential(*layers)
    import_module("tabm").batchensemble_linear_layers_(net, k=members, scaling_init="random-signs")
    return [MembersSecond(net, members)]


def _no_convolutions(network: Network) -> str:
    return "" if len(network.shape) == 1 else "it has no convolutions"


def _no_norms(network: Network) -> str:
    return "" if len(network.shape) > 1 else "the network has no batch norms"


WAYS: dict[str, Way] = {
    OURS: Way(lambda network, members: [be.convert(network.make(), members, copy=False)]),
    OWN_NORMS: Way(
        lambda network, members: [be.convert(network.make(), members, copy=False, norm="member")], misfit=_no_norms
    ),
    ONE_BY_ONE: Way(lambda network, members: [network.make() for _ in range(members)]),
    "naive, torch.func.vmap": Way(lambda network, members: [AtOnce([network.make() for _ in range(members)])]),
    "torch-uncertainty": Way(_with_torch_uncertainty, "torch_uncertainty"),
    "tabm": Way(_with_tabm, "tabm", _no_convolutions),
}

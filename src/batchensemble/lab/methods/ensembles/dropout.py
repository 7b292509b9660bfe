"""Monte Carlo dropout: one network evaluated several times, each time with other units switched off."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import torch
from torch import Tensor, nn

import batchensemble as be
from batchensemble.lab.methods.ensembles.method import Method, Network

Net = TypeVar("Net", bound=nn.Module)


@dataclass(frozen=True)
class Dropout(Method):
    """The paper's MC-dropout: one more dense layer and dropout before the classifier, as large as BatchEnsemble.

    Args:
        rate: dropout rate before the classifier; the paper does not state it.
        block_rate: dropout rate before every convolution of the residual branches.
        head_width: width of the dense layer; by default the one that matches BatchEnsemble in parameters.
        members: members of the BatchEnsemble to match.
    """

    rate: float = 0.1
    block_rate: float = 0.0
    head_width: int | None = None
    members: int = 4

    def build(self, network: Network, seed: int) -> nn.Module:
        """Build the network with the wider head."""
        width = self.head_width or matched_width(network(), self.members)
        generator = torch.Generator().manual_seed(seed)
        return network(head_width=width, dropout=self.rate, block_dropout=self.block_rate, generator=generator)

    def logits(self, models: Sequence[nn.Module], images: Tensor, samples: int) -> Tensor:
        """`(samples, N, classes)`; everything before the first mask is computed once."""
        net = dropping_(models[0])
        if self.block_rate:
            return torch.stack([net(images) for _ in range(samples)])
        features = net.get_submodule("backbone")(images)
        return torch.stack([net.get_submodule("head")(features) for _ in range(samples)])

    def passes(self, samples: int) -> int:
        """One pass per sample, as the paper counts."""
        return samples


def dropping_(model: Net) -> Net:
    """Turn dropout on in a network that is otherwise in evaluation mode."""
    for module in model.modules():
        if isinstance(module, nn.Dropout | nn.Dropout2d):
            module.train()
    return model


def matched_width(net: nn.Module, members: int) -> int:
    """The width `h` of a dense layer before the classifier with as many parameters as BatchEnsemble adds.

    `features h + h + h classes` parameters replace `features classes`, and should be `extra` more.

    Examples:
        >>> from batchensemble.lab.models import resnet
        >>> matched_width(resnet(32, 4, 10), 4), matched_width(resnet(32, 4, 100), 4)
        (155, 182)
    """
    classifier = cast(nn.Linear, net.get_submodule("head.classifier"))
    features, classes = classifier.in_features, classifier.out_features
    extra = _size(be.convert(net, members)) - _size(net)
    return max(1, round((extra + features * classes) / (features + 1 + classes)))


def _size(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())

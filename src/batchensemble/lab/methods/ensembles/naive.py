"""The naive ensemble: independent networks, at the cost of one network per member."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from batchensemble.lab.methods.ensembles.method import Batch, Method, Network, SeededMethod, Stream
from batchensemble.lab.methods.ensembles.objective import classified
from batchensemble.lab.methods.ensembles.single import Single


@dataclass(frozen=True)
class Naive(Method):
    """Networks that differ in initialisation, order and crops: the single networks of consecutive seeds.

    Args:
        members: number of networks.
        together: train all at once with stacked weights (if they fit) instead of one after another; every member still
            starts from its own seed and sees its own images.
    """

    members: int = 4
    together: bool = False

    def parts(self, seed: int) -> tuple[SeededMethod, ...]:
        """The single networks, trained once for whoever asks, or itself if trained together."""
        if self.together:
            return super().parts(seed)
        return tuple(SeededMethod(Single(), self._seed(seed, i)) for i in range(self.members))

    def build(self, network: Network, seed: int) -> nn.Module:
        """Build all networks as one module of stacked weights."""
        single = Single()
        return Stacked([single.build(network, self._seed(seed, i)) for i in range(self.members)])

    def streams(self, seed: int) -> tuple[Stream, ...]:
        """One stream per member, the same as it would have on its own."""
        return tuple(Stream(self._seed(seed, i), self._seed(seed, i)) for i in range(self.members))

    def loss(self, model: nn.Module, batch: Batch, weight_decay: float) -> dict[str, Tensor]:
        """The sum of the members' losses, so that each learns at the rate of a single network."""
        logits = model(batch.images.reshape(self.members, -1, *batch.images.shape[1:]))
        scores = classified(logits.flatten(0, 1), batch.labels)
        return {**scores, "loss": scores["loss"] * self.members}

    def logits(self, models: Sequence[nn.Module], images: Tensor, samples: int) -> Tensor:
        """`(members, N, classes)`."""
        if self.together:
            logits: Tensor = models[0](images.expand(self.members, *images.shape))
            return logits
        return torch.stack([model(images) for model in models])

    def passes(self, samples: int) -> int:
        """One pass per member."""
        return self.members

    def _seed(self, seed: int, member: int) -> int:
        return seed * self.members + member


class Stacked(nn.Module):
    """Networks of one architecture as one module: parameters and buffers keep their names and gain a member axis.

    Examples:
        >>> nets = [nn.Linear(3, 2) for _ in range(4)]
        >>> Stacked(nets)(torch.zeros(4, 5, 3)).shape
        torch.Size([4, 5, 2])
    """

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        parameters, buffers = stack_module_state(list(networks))
        self.net = copy.deepcopy(networks[0])
        for name, stacked in parameters.items():
            module, leaf = _owner(self.net, name)
            setattr(module, leaf, nn.Parameter(stacked.detach()))
        for name, stacked in buffers.items():
            module, leaf = _owner(self.net, name)
            setattr(module, leaf, stacked)

    def forward(self, images: Tensor) -> Tensor:
        """Map images `(members, N, ...)`, separate for every member, to `(members, N, classes)`."""
        state = {**dict(self.net.named_parameters()), **dict(self.net.named_buffers())}

        def member(state: dict[str, Tensor], images: Tensor) -> Tensor:
            return cast(Tensor, functional_call(self.net, state, images))

        # vmap has no rule for pooling in channels-last format
        return vmap(member, randomness="different")(state, images.contiguous())


def _owner(net: nn.Module, name: str) -> tuple[nn.Module, str]:
    path, _, leaf = name.rpartition(".")
    return net.get_submodule(path), leaf

"""An optimiser that does not know the members' parameters: it was made before they were."""

import torch
from torch import Tensor, nn

from batchensemble.nn.layers.member import member_modules, own_tensors
from batchensemble.nn.tracing import can_be_read, is_transformed

STEPS = 10  # an optimiser of W alone may take turns with one of r and s
CALLS = 1000  # after so many without as many steps it is given up: fused optimisers of all parameters show none


class StaleOptimizer:
    """Notices that W is trained in step after step, and nothing that members own, though it has gradients.

    Steps are told by torch's version counter of each tensor. Before anything is said, the members' values are compared
    as well: they may have an optimiser of their own that does not raise it (`fused=True`). Once a member has moved,
    only a flag is read.
    """

    def __init__(self) -> None:
        self._over = False
        self._calls = self._steps = 0
        self._own: list[tuple[Tensor, int, Tensor]] = []  # what members own, its version and its values
        self._shared: list[tuple[Tensor, int]] = []  # the other parameters of their layers, W

    def is_seen(self, net: nn.Module) -> bool:
        """Whether it is known by now; asked at every training call, it is true only once."""
        if torch.compiler.is_compiling() or self._over or not torch.is_grad_enabled() or is_transformed():
            return False
        if not self._own:
            self._remember(net)
            return False
        self._count()
        moved = any(tensor._version != version for tensor, version, _ in self._own)
        enough = self._steps >= STEPS
        seen = enough and not moved and self._is_left_behind()
        if moved or enough or self._calls >= CALLS:
            self._over, self._own, self._shared = True, [], []
        return seen

    def _remember(self, net: nn.Module) -> None:
        own = [tensor for tensor in own_tensors(net).values() if tensor.requires_grad]
        shared = [
            parameter
            for _, module in member_modules(net)
            for name, parameter in module.named_parameters(recurse=False)
            if name not in module.stacked and parameter.requires_grad
        ]
        plain = all(type(tensor) is nn.Parameter and not tensor.is_inference() for tensor in [*own, *shared])
        if not (own and shared and plain and can_be_read(own[0].detach())):  # frozen, sharded, swapped for a call
            self._over = True
            return
        self._own = [(tensor, tensor._version, tensor.detach().clone()) for tensor in own]
        self._shared = [(tensor, tensor._version) for tensor in shared]

    def _count(self) -> None:
        """Count this call, and the step before it, if there was one."""
        self._calls += 1
        if any(tensor._version != version for tensor, version in self._shared):
            self._steps += 1
            self._shared = [(tensor, tensor._version) for tensor, _ in self._shared]

    def _is_left_behind(self) -> bool:
        # Gradients that were there before members were frozen stay there: no optimiser that trains W clears them.
        has_gradient = any(tensor.grad is not None and tensor.requires_grad for tensor, *_ in self._own)
        can_compare = all(can_be_read(values) for *_, values in self._own)  # unless a CUDA graph is being captured
        return has_gradient and can_compare and all(_has(tensor, values) for tensor, _, values in self._own)


def _has(tensor: Tensor, values: Tensor) -> bool:
    return torch.equal(tensor, values.to(tensor.device))  # the ensemble may have been moved since its first call

"""Watches over an ensemble's training, and warns once of what would go wrong without an error."""

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from batchensemble.ensemble.stale import StaleOptimizer
from batchensemble.nn.layers.member import own_tensors
from batchensemble.nn.tracing import only_computes

IN_EVALUATION = (
    "this ensemble is trained in evaluation mode, where model(x) is the combined answer of all members: equal members "
    "stay equal, and others hide behind each other. Call model.train() before training; to show every member every "
    "row, use be.mean_loss over model.members(x)."
)

STALE = (
    "the optimiser trains what members share, and none of their own parameters (r, s, biases, norms), which gather "
    "gradients: it does not know them. Build it after convert, add_members and keep_members, with "
    "be.parameter_groups(model, ...) or model.parameters(). If members are not to be trained, freeze what they own "
    "(requires_grad_(False))."
)


class Watch:
    """What an ensemble remembers of its training. A compiled graph remembers nothing, and cannot warn.

    Training in evaluation mode shows as a gradient through the combined answer, a change of the members' own tensors,
    and then another combined answer. A gradient alone is not training: saliency maps and adversarial examples take
    one, too. Neither is a change that something else may have made in between (see `forget`). Changes are told by
    torch's version counter of each tensor, which costs nothing; `fused=True` optimisers do not raise it, so training
    with them goes unnoticed.
    """

    def __init__(self) -> None:
        self._had_few_rows = self._had_evaluation = False
        self._stale = StaleOptimizer()
        self._versions: list[tuple[Tensor, int]] = []  # what members owned when a gradient last passed, and its version

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_versions": [], "_stale": StaleOptimizer()}  # a copy owns other tensors

    def warn_of_few_rows(self, count: int, members: int) -> None:
        """Warn once of a batch that is too small to reach every member."""
        if torch.compiler.is_compiling() or self._had_few_rows or count >= members:
            return
        self._had_few_rows = True
        warnings.warn(
            f"a batch of {count} {'row' if count == 1 else 'rows'} for {members} members: some of them get none. If "
            "this is an epoch's last batch, leave it out (drop_last=True). If all are so small, some members never "
            "train: use larger batches, or be.mean_loss over model.members(x). If the first argument carries no rows "
            "(a time, a temperature), name it in shared_inputs",
            stacklevel=7,  # the caller of model(x)
        )

    def warn_of_stale_optimizer(self, net: nn.Module, stacklevel: int) -> None:
        """Warn, in a training call, if the steps so far have trained W, and nothing that members own."""
        if self._stale.is_seen(net):
            warnings.warn(STALE, stacklevel=stacklevel + 1)

    def begin_anew(self) -> None:
        """Expect an optimiser of other parameters: members came, or went, or were loaded."""
        self._stale = StaleOptimizer()

    def warn_of_evaluation(self, answer: Tensor, net: nn.Module) -> None:
        """Warn once if members have changed since a gradient passed through the last combined answer."""
        if self._had_evaluation or not only_computes(answer) or answer.grad_fn is None:
            return
        self._had_evaluation = any(tensor._version != version for tensor, version in self._versions)
        if self._had_evaluation:
            warnings.warn(IN_EVALUATION, stacklevel=7)
        self.forget()
        # On the node: a hook on the tensor would warn when it is pickled.
        answer.grad_fn.register_prehook(lambda _: self._remember(net))

    def _remember(self, net: nn.Module) -> None:
        self._versions = [(own, own._version) for own in own_tensors(net).values() if own.requires_grad]

    def forget(self) -> None:
        """Expect changes from here on: members train in another way, or are loaded."""
        if not torch.compiler.is_compiling():
            self._versions = []

"""What lets an ensemble pass for its network: what Transformers and others ask a network for, besides its answers."""

from typing import Any

import torch
from torch import nn

from batchensemble.nn.routing.route import carry_route


class StandIn(nn.Module):
    """A module that passes for the network in it.

    Args:
        net: the network.

    Examples:
        >>> StandIn(nn.Linear(4, 3).double()).dtype
        torch.float64
    """

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def _get_name(self) -> str:
        """The network's name: Transformers' Trainer knows by it which networks shift their labels."""
        return type(self.net).__name__

    @property
    def config(self) -> Any:
        """The network's own config (Transformers)."""
        return self.net.config

    @property
    def accepts_loss_kwargs(self) -> bool:
        """Whether the network's own loss takes the number of labels in a whole step (Transformers' Trainer)."""
        return self.net.accepts_loss_kwargs  # type: ignore[return-value]

    @property
    def loss_type(self) -> Any:
        """The kind of the network's own loss (Transformers' Trainer)."""
        return self.net.loss_type

    def gradient_checkpointing_enable(
        self, gradient_checkpointing_kwargs: dict[str, Any] | None = None, **others: Any
    ) -> None:
        """Enable the network's own (Transformers), such that recomputation carries the route; Trainer calls this."""
        options = {"use_reentrant": False, "context_fn": carry_route, **(gradient_checkpointing_kwargs or {})}
        self.net.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options, **others)  # type: ignore[operator]

    @property
    def device(self) -> torch.device:
        """Where the network's parameters are."""
        return next(self.net.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the network's parameters."""
        return next(self.net.parameters()).dtype

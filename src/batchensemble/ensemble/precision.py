"""A note for the error of a network whose inputs are of another precision than its weights."""

from typing import Any

from torch import Tensor, nn

from batchensemble.nn.trees import tensors


def explain_types(net: nn.Module, error: Exception, inputs: Any) -> str:
    """Say that inputs and weights differ in type, if torch's error is about types and they do; else empty.

    Examples:
        >>> import torch
        >>> wrong = RuntimeError("mat1 and mat2 must have the same dtype, but got Double and Float")
        >>> explain_types(nn.Linear(2, 3), wrong, torch.ones(1, 2, dtype=torch.float64))[:63]
        'the weights are torch.float32, and the network got an input of '
    """
    weights = {parameter.dtype for parameter in net.parameters()}
    given: list[Tensor] = [tensor for tensor in tensors(inputs) if tensor.is_floating_point() or tensor.is_complex()]
    strange = next((tensor.dtype for tensor in given if tensor.dtype not in weights), None)
    if strange is None or len(weights) != 1 or "type" not in str(error):
        return ""
    (own,) = weights
    return f"the weights are {own}, and the network got an input of {strange}: give it x.to({own}), or cast the network"

"""Layers with members: equation 5 of the paper, the layers that use it, and the function that swaps them in."""

from batchensemble.nn.conversion.convert import convert_
from batchensemble.nn.layers.attention import MultiheadAttention
from batchensemble.nn.layers.convolutions import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from batchensemble.nn.layers.embedding import Embedding
from batchensemble.nn.layers.linear import Linear
from batchensemble.nn.layers.norm import BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm, LayerNorm, RMSNorm
from batchensemble.nn.layers.recurrent import GRU, LSTM
from batchensemble.nn.layers.transformers import Conv1D
from batchensemble.nn.routing.route import carry_route

__all__ = [
    "GRU",
    "LSTM",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1D",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Embedding",
    "GroupNorm",
    "LayerNorm",
    "Linear",
    "MultiheadAttention",
    "RMSNorm",
    "carry_route",
    "convert_",
]


def __dir__() -> list[str]:
    return __all__

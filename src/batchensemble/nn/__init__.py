"""Layers with members: equation 5 of the paper, the layers that use it, and the function that swaps them in."""

from batchensemble.nn.attention import MultiheadAttention
from batchensemble.nn.convert import convert_
from batchensemble.nn.embedding import Embedding
from batchensemble.nn.layers import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    Linear,
)
from batchensemble.nn.norm import BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm, LayerNorm
from batchensemble.nn.recurrent import GRU, LSTM
from batchensemble.nn.route import carry_route
from batchensemble.nn.transformers import Conv1D

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
    "carry_route",
    "convert_",
]


def __dir__() -> list[str]:
    return __all__

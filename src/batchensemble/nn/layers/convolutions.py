"""Convolutions and transposed convolutions for members: one generic layer each, and thin subclasses by dimension."""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from batchensemble.nn.layers.linear import RankOneLayer


class Convolution(RankOneLayer):
    """Base of the convolutions: features on axis 1, rows on axis 0."""

    features_at = 1
    rows_at = 0
    stackable = True

    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None = None, **options: Any) -> Tensor:
        """The convolution, with torch's own padding modes; for a stack of weights, one convolution each."""
        convolve: Any = self._conv_forward
        if weight.ndim == self.weight.ndim:
            return convolve(x, weight, bias)  # type: ignore[no-any-return]
        parts = zip(x.unbind(), weight.unbind(), [None] * len(x) if bias is None else bias.unbind(), strict=True)
        each = [convolve(*part) for part in parts]
        y: Tensor = torch.cat(each).unflatten(0, (len(each), -1))  # not stack, which loses channels_last
        return y


class Conv1d(Convolution, nn.Conv1d):
    """`torch.nn.Conv1d` for members: `(members * n, in, length)` to `(members * n, out, length')`.

    r, s and bias as in `Conv2d`.
    """


class Conv2d(Convolution, nn.Conv2d):
    """`torch.nn.Conv2d` for members: `(members * n, in, height, width)` to `(members * n, out, height', width')`.

    `r (members, in)`, `s (members, out)`, with a rank above 1 `(members, rank, in)` and `(members, rank, out)`;
    `bias (members, out)`.

    Examples:
        >>> Conv2d(3, 8, 3, members=4, padding="same")(torch.ones(8, 3, 5, 5)).shape
        torch.Size([8, 8, 5, 5])
    """


class Conv3d(Convolution, nn.Conv3d):
    """`torch.nn.Conv3d` for members: `(members * n, in, depth, ...)` to `(members * n, out, depth', ...)`.

    r, s and bias as in `Conv2d`.
    """


class TransposedConvolution(RankOneLayer):
    """Base of the transposed convolutions, whose weight is `(in, out / groups, ...)`."""

    features_at = 1
    rows_at = 0
    input_first = True
    operation: ClassVar[Callable[..., Tensor]]

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """As in torch: `output_size` selects one of the possible sizes."""
        return self._answer(input, output_size=output_size)

    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None = None, **options: Any) -> Tensor:
        """The transposed convolution."""
        me: Any = self
        spatial = weight.ndim - 2
        padding = me._output_padding(
            x, options.get("output_size"), me.stride, me.padding, me.kernel_size, spatial, me.dilation
        )
        return type(self).operation(x, weight, bias, me.stride, me.padding, padding, me.groups, me.dilation)


class ConvTranspose1d(TransposedConvolution, nn.ConvTranspose1d):
    """`torch.nn.ConvTranspose1d` for members: `(members * n, in, length)` to `(members * n, out, length')`.

    r, s and bias as in `Conv2d`.
    """

    operation = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(TransposedConvolution, nn.ConvTranspose2d):
    """`torch.nn.ConvTranspose2d` for members: `(members * n, in, height, ...)` to `(members * n, out, height', ...)`.

    r, s and bias as in `Conv2d`.

    Examples:
        >>> ConvTranspose2d(3, 8, 2, stride=2, members=4)(torch.ones(8, 3, 5, 5)).shape
        torch.Size([8, 8, 10, 10])
    """

    operation = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(TransposedConvolution, nn.ConvTranspose3d):
    """`torch.nn.ConvTranspose3d` for members: `(members * n, in, depth, ...)` to `(members * n, out, depth', ...)`.

    r, s and bias as in `Conv2d`.
    """

    operation = staticmethod(F.conv_transpose3d)

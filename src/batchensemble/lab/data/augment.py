"""Augmentation in whole batches, on the device that holds them.

Random numbers and pixels are kept apart: `draw_crops` draws the numbers (for a whole epoch, if desired), and
`crop_flip` moves pixels without drawing any, so that it compiles and can be replayed as a CUDA graph.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


def draw_crops(count: int, generator: torch.Generator, pad: int = 4) -> Tensor:
    """Draw random crops `(count, 3)` on the generator's device: top and left in `[0, 2 pad]`, and 1 for a flip.

    Examples:
        >>> crops = draw_crops(1000, torch.Generator().manual_seed(0))
        >>> crops.shape, crops.amax(0).tolist()
        (torch.Size([1000, 3]), [8, 8, 1])
    """
    corner = torch.randint(2 * pad + 1, (count, 2), generator=generator, device=generator.device)
    flip = torch.randint(2, (count, 1), generator=generator, device=generator.device)
    return torch.cat([corner, flip], dim=1)


def crop_flip(images: Tensor, crops: Tensor, pad: int = 4) -> Tensor:
    """Pad with zeros, crop every image back to its size at its own corner, and mirror those marked.

    Args:
        images: `(N, C, H, W)`, uint8 or float.
        crops: `(N, 3)` from `draw_crops`; `[pad, pad, 0]` leaves an image as it is.
        pad: zeros on every side.

    Returns:
        `(N, C, H, W)` of the same dtype, contiguous.
    """
    count, channels, height, width = images.shape
    if crops.shape != (count, 3):
        raise ValueError(f"crops must be ({count}, 3), one row for every image, got {tuple(crops.shape)}")
    top, left, flip = crops[:, :, None].unbind(1)  # (N, 1) each
    across = torch.arange(width, device=images.device)
    rows = top + torch.arange(height, device=images.device)  # (N, H)
    columns = left + torch.where(flip.bool(), width - 1 - across, across)  # (N, W)
    padded = F.pad(images, (pad, pad, pad, pad))
    image = torch.arange(count, device=images.device)[:, None, None, None]
    channel = torch.arange(channels, device=images.device)[None, :, None, None]
    return padded[image, channel, rows[:, None, :, None], columns[:, None, None, :]]


def normalise(images: Tensor, mean: Tensor | Sequence[float], std: Tensor | Sequence[float]) -> Tensor:
    """`(x - mean) / std` per channel, in float; uint8 pixels are scaled to `[0, 1]` first.

    Args:
        images: `(N, C, H, W)`; float images are assumed to be in `[0, 1]` and keep their dtype.
        mean: one number for every channel.
        std: one number for every channel.

    Examples:
        >>> grey = torch.full((1, 3, 2, 2), 255, dtype=torch.uint8)
        >>> normalise(grey, [0.5, 0.5, 0.5], [0.5, 0.5, 0.5]).unique()
        tensor([1.])
    """
    x = images if images.is_floating_point() else images.float() / 255
    mean, std = (torch.as_tensor(v, dtype=x.dtype, device=x.device).view(-1, 1, 1) for v in (mean, std))
    return (x - mean) / std

"""scikit-learn's bundled digits: 1797 images of 8x8 pixels, no download; and noise of that size."""

import torch

from batchensemble.lab.data.image_set import ImageSet


def load_digits(test: float = 0.25, seed: int = 0) -> tuple[ImageSet, ImageSet]:
    """Load handwritten digits `(N, 1, 8, 8)`, ten classes, split into training and test by `seed`.

    Args:
        test: share of every class that is held out for testing.
        seed: decides which images are held out.

    Examples:
        >>> train, test = load_digits()
        >>> train.images.shape, len(test)
        (torch.Size([1347, 1, 8, 8]), 450)
    """
    from sklearn.datasets import load_digits as bundled

    digits = bundled()
    images = torch.from_numpy(digits.images).mul(255 / 16).round().to(torch.uint8).unsqueeze(1)
    names = tuple(str(name) for name in digits.target_names)
    everything = ImageSet(images, torch.from_numpy(digits.target).long(), 10, "digits", names)
    train, held_out = everything.split(test, seed)
    return train, held_out


def draw_noise(count: int = 450, seed: int = 0) -> ImageSet:
    """Draw images `(count, 1, 8, 8)` of the digits' size whose pixels are independent and uniform; all labels are 0.

    Examples:
        >>> draw_noise(3).images.shape
        torch.Size([3, 1, 8, 8])
    """
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(256, (count, 1, 8, 8), generator=generator, dtype=torch.uint8)
    return ImageSet(images, torch.zeros(count, dtype=torch.int64), 10, "noise")

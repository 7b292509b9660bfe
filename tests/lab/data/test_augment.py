import pytest
import torch

from batchensemble.lab.data import crop_flip, draw_crops, normalise


def one_by_one(images, crops, pad):
    """Pad, cut and mirror every image by itself."""
    results = []
    for image, (top, left, flip) in zip(images, crops.tolist(), strict=True):
        padded = torch.zeros(image.shape[0], image.shape[1] + 2 * pad, image.shape[2] + 2 * pad, dtype=image.dtype)
        padded[:, pad:-pad, pad:-pad] = image
        cut = padded[:, top : top + image.shape[1], left : left + image.shape[2]]
        results.append(cut.flip(2) if flip else cut)
    return torch.stack(results)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_the_batch_equals_every_image_by_itself(dtype):
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (50, 3, 10, 7), generator=generator).to(dtype)
    crops = draw_crops(50, generator, pad=3)
    assert torch.equal(crop_flip(images, crops, pad=3), one_by_one(images, crops, 3))


def test_channels_last_images_are_cut_alike():
    generator = torch.Generator().manual_seed(0)
    images, crops = torch.randn(4, 3, 8, 8), draw_crops(4, generator)
    assert torch.equal(crop_flip(images.to(memory_format=torch.channels_last), crops), crop_flip(images, crops))


def test_crops_cover_all_corners_and_both_sides():
    crops = draw_crops(5000, torch.Generator().manual_seed(1), pad=4)
    for column, values in enumerate((9, 9, 2)):
        counts = torch.bincount(crops[:, column], minlength=values)
        assert len(counts) == values
        assert counts.min() > 0.8 * 5000 / values


def test_the_generator_decides():
    one, two, other = (draw_crops(8, torch.Generator().manual_seed(s)) for s in (0, 0, 1))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_crop_flip_is_one_graph():
    images, crops = torch.randn(4, 3, 8, 8), draw_crops(4, torch.Generator().manual_seed(3))
    compiled = torch.compile(crop_flip, backend="eager", fullgraph=True)
    assert torch.equal(compiled(images, crops), crop_flip(images, crops))


def test_crops_of_another_batch_are_refused():
    with pytest.raises(ValueError, match=r"\(4, 3\).*got \(3, 3\)"):
        crop_flip(torch.zeros(4, 3, 8, 8), torch.zeros(3, 3, dtype=torch.int64))


@pytest.mark.parametrize("mean", [[0.1, 0.2, 0.3], torch.tensor([0.1, 0.2, 0.3])])
def test_normalise_is_the_written_formula(mean):
    images = torch.randint(256, (5, 3, 4, 4), dtype=torch.uint8)
    expected = torch.stack(
        [(images[:, c] / 255 - m) / s for c, (m, s) in enumerate([(0.1, 0.5), (0.2, 1), (0.3, 2)])], 1
    )
    torch.testing.assert_close(normalise(images, mean, [0.5, 1, 2]), expected)
    torch.testing.assert_close(normalise(images / 255, mean, [0.5, 1, 2]), expected)
    assert normalise((images / 255).bfloat16(), mean, [0.5, 1, 2]).dtype == torch.bfloat16

import pytest
import torch

from batchensemble.lab.data import ImageSet


def numbered(count=200, classes=4, name="numbers"):
    """Every image holds its own index, so that what was taken can be read back."""
    images = torch.arange(count).view(-1, 1, 1, 1).expand(count, 1, 2, 2).to(torch.uint8)
    return ImageSet(images.clone(), torch.arange(count) ** 2 % classes, classes, name)


def indices(data):
    return data.images[:, 0, 0, 0].tolist()


@pytest.mark.parametrize("fraction", [0.1, 0.2, 0.5, 1.0])
def test_subset_takes_the_same_share_of_every_class(fraction):
    data = numbered()
    part = data.subset(fraction, seed=3)
    expected = (torch.bincount(data.labels, minlength=4) * fraction).tolist()
    assert torch.bincount(part.labels, minlength=4).tolist() == pytest.approx(expected)
    assert indices(part) == sorted(indices(part))


def test_subsets_of_one_seed_are_nested_and_of_two_seeds_differ():
    data = numbered()
    tenth, fifth, half = (set(indices(data.subset(f, seed=1))) for f in (0.1, 0.2, 0.5))
    assert tenth < fifth < half
    assert tenth != set(indices(data.subset(0.1, seed=2)))
    assert tenth == set(indices(data.subset(0.1, seed=1)))


def test_subset_keeps_images_with_their_labels():
    part = numbered().subset(0.3)
    assert part.labels.tolist() == [i**2 % 4 for i in indices(part)]


def test_split_parts_are_disjoint_and_whole():
    train, validation = numbered().split(0.2, seed=5)
    assert sorted(indices(train) + indices(validation)) == list(range(200))
    assert len(validation) == 40
    assert (train.name, validation.name) == ("numbers-train", "numbers-validation")


def test_channel_statistics_are_torchs():
    images = torch.randint(256, (20, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    mean, std = ImageSet(images, torch.zeros(20, dtype=torch.int64), 1, "x").channel_statistics()
    scaled = images.double() / 255
    torch.testing.assert_close(mean.double(), scaled.mean((0, 2, 3)), atol=1e-7, rtol=0)
    torch.testing.assert_close(std.double(), scaled.std((0, 2, 3), correction=0), atol=1e-7, rtol=0)


IMAGES, LABELS = torch.zeros(3, 1, 2, 2, dtype=torch.uint8), torch.tensor([0, 1, 2])


@pytest.mark.parametrize(
    ("images", "labels", "classes", "names", "message"),
    [
        (IMAGES.float(), LABELS, 3, (), "uint8"),
        (IMAGES[0], LABELS, 3, (), "uint8"),
        (IMAGES, LABELS[:2], 3, (), r"int64 \(3,\), got torch.int64 \(2,\)"),
        (IMAGES, LABELS.int(), 3, (), "int64"),
        (IMAGES, LABELS, 2, (), r"\[0, 2\), got 0 to 2"),
        (IMAGES, LABELS - 1, 3, (), r"got -1 to 1"),
        (IMAGES, LABELS, 3, ("one",), "1 class names"),
    ],
)
def test_what_is_not_an_image_set_is_refused(images, labels, classes, names, message):
    with pytest.raises(ValueError, match=message):
        ImageSet(images, labels, classes, "bad", names)


@pytest.mark.parametrize("fraction", [0, -0.1, 1.5])
def test_a_fraction_outside_its_range_is_refused(fraction):
    with pytest.raises(ValueError, match="fraction"):
        numbered().subset(fraction)

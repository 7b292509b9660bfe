import pytest
import torch
from sklearn.linear_model import LogisticRegression

from batchensemble.lab.data import procedural
from batchensemble.lab.data.procedural import hsv
from batchensemble.lab.data.shapes import KNOWN, UNSEEN


@pytest.mark.parametrize("classes", [10, 100])
def test_labels_are_balanced_and_named(classes):
    train, test = procedural(classes, train=300, test=200)
    assert torch.bincount(train.labels).unique().tolist() == [300 // classes]
    assert train.images.shape == (300, 3, 32, 32)
    assert len(set(train.class_names)) == classes
    assert len(test) == 200


def test_the_seed_decides_every_pixel():
    one, again, other = (procedural(train=20, test=20, seed=s) for s in (4, 4, 5))
    assert torch.equal(one[0].images, again[0].images)
    assert not torch.equal(one[0].images, other[0].images)
    assert not torch.equal(one[0].images, one[1].images)
    assert torch.equal(one[1].images, procedural(train=50, test=20, seed=4)[1].images)


def test_figures_are_all_different_and_unseen_ones_are_new():
    line = torch.linspace(-1.2, 1.2, 48)
    u, v = line.expand(48, 48), line[:, None].expand(48, 48)
    masks = [figure(u, v) > 0 for figure in (*KNOWN.values(), *UNSEEN.values())]
    assert len(masks) == 20
    for i, one in enumerate(masks):
        assert 0.1 < one.float().mean() < 0.6
        for other in masks[:i]:
            assert (one & other).sum() / (one | other).sum() < 0.9


def test_classes_can_be_partly_told_by_colour_alone():
    """Neither trivial nor hopeless, even for a linear model on each image's most colourful pixels."""

    def colour(data):
        x = data.images.float().flatten(2) / 255
        vivid = (x.amax(1) - x.amin(1)).topk(60, dim=1).indices
        return torch.gather(x, 2, vivid[:, None].expand(-1, 3, -1)).mean(2).numpy()

    train, test = procedural(train=1000, test=500)
    model = LogisticRegression(C=100, max_iter=500).fit(colour(train), train.labels.numpy())
    assert 0.25 < model.score(colour(test), test.labels.numpy()) < 0.8


def test_hsv_is_the_standard_conversion():
    from matplotlib.colors import hsv_to_rgb

    h, s, v = torch.rand(3, 100, generator=torch.Generator().manual_seed(0))
    expected = torch.from_numpy(hsv_to_rgb(torch.stack([h, s, v], 1).double().numpy()))
    torch.testing.assert_close(hsv(h, s, v).double(), expected, atol=1e-5, rtol=0)


def test_other_numbers_of_classes_are_refused():
    with pytest.raises(ValueError, match="10 or 100, got 7"):
        procedural(7)

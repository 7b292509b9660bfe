import pytest
import torch

from batchensemble.lab.data import ImageSet, split_classes


def numbered(count, classes=20):
    images = torch.arange(count).view(-1, 1, 1, 1).to(torch.uint8)
    names = tuple(f"name{i}" for i in range(classes))
    return ImageSet(images, torch.arange(count) % classes, classes, "numbers", names)


TRAIN, TEST = numbered(200), numbered(100)


@pytest.mark.parametrize("order", ["random", "label"])
def test_tasks_share_no_class_and_lose_no_image(order):
    tasks = split_classes(TRAIN, TEST, tasks=4, seed=7, order=order)
    assert sorted(label for task in tasks for label in task.labels) == list(range(20))
    for whole, parts in ((TRAIN, [t.train for t in tasks]), (TEST, [t.test for t in tasks])):
        assert sorted(i for part in parts for i in part.images.flatten().tolist()) == list(range(len(whole)))


def test_labels_are_counted_from_zero_and_lead_back():
    for task in split_classes(TRAIN, TEST, tasks=5, seed=1):
        assert task.train.classes == task.test.classes == 4
        for part in (task.train, task.test):
            original = [task.labels[label] for label in part.labels.tolist()]
            assert original == [i % 20 for i in part.images.flatten().tolist()]
            assert part.class_names == tuple(f"name{label}" for label in task.labels)


def test_order_and_seed_decide_the_classes():
    by_label = [task.labels for task in split_classes(TRAIN, TEST, tasks=10, order="label")]
    assert by_label == [(i, i + 1) for i in range(0, 20, 2)]
    draws = [[t.labels for t in split_classes(TRAIN, TEST, tasks=10, seed=s)] for s in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"tasks": 3}, "divide the 20"), ({"tasks": 0}, "divide"), ({"tasks": 2, "order": "x"}, "got 'x'")],
)
def test_what_cannot_be_dealt_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        split_classes(TRAIN, TEST, **options)


def test_two_sets_with_other_classes_are_refused():
    with pytest.raises(ValueError, match="20 classes, test 10"):
        split_classes(TRAIN, numbered(10, 10), tasks=2)

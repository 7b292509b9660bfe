import pytest
import torch

from batchensemble.lab.data import ImageSet, split_classes


def numbered(count, classes=20):
    images = torch.arange(count).view(-1, 1, 1, 1).to(torch.uint8)
    names = tuple(f"name{i}" for i in range(classes))
    return ImageSet(images, torch.arange(count) % classes, classes, "numbers", names)


TRAIN, TEST = numbered(200), numbered(100)


def test_tasks_share_no_class_and_lose_no_image():
    tasks = split_classes(TRAIN, TEST, tasks=4, seed=7)
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


def test_the_seed_decides_the_classes():
    draws = [[t.labels for t in split_classes(TRAIN, TEST, tasks=10, seed=s)] for s in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.parametrize("tasks", [3, 0])
def test_what_cannot_be_dealt_is_refused(tasks):
    with pytest.raises(ValueError, match=f"divide the 20 classes, got {tasks}"):
        split_classes(TRAIN, TEST, tasks)


def test_two_sets_with_other_classes_are_refused():
    with pytest.raises(ValueError, match="20 classes, test 10"):
        split_classes(TRAIN, numbered(10, 10), tasks=2)

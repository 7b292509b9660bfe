"""Pictures in folders, read one by one."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from batchensemble.lab.data.image_folder import ImageFolder, class_names


@pytest.fixture
def root(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for name, count in (("cat", 2), ("ant", 3)):
        (tmp_path / name).mkdir()
        for i in range(count):
            noise = rng.integers(0, 255, (40, 60, 3), dtype=np.uint8)
            Image.fromarray(noise).save(tmp_path / name / f"{i}.{'JPEG' if i else 'png'}")
    (tmp_path / "ant" / "notes.txt").write_text("no picture")
    return tmp_path


def test_labels_are_folders_in_order(root: Path) -> None:
    assert class_names(root) == ("ant", "cat")
    assert [label for _, label in ImageFolder(root).rows] == [0, 0, 0, 1, 1]
    assert [label for _, label in ImageFolder(root, ("cat",)).rows] == [0, 0]


def test_at_rest_a_picture_is_the_middle_of_its_file(root: Path) -> None:
    data = ImageFolder(root, ("ant",), size=35)  # 7/8 of 40, so that no pixel is resampled
    picture, _ = data[0]
    with Image.open(root / "ant" / "0.png") as file:
        whole = torch.from_numpy(np.array(file)).permute(2, 0, 1)
    assert picture.dtype == torch.uint8
    assert data[0][0].equal(picture)
    assert (picture.float() - whole[:, 2:37, 12:47].float()).abs().mean() < 60  # half a pixel off, of noise
    flat = ImageFolder(root, ("ant",), size=8)[0][0]
    assert flat.shape == (3, 8, 8)


def test_in_training_parts_follow_from_torchs_generator(root: Path) -> None:
    data = ImageFolder(root, size=16, training=True)
    torch.manual_seed(0)
    first, second = data[0][0], data[0][0]
    torch.manual_seed(0)
    assert torch.equal(data[0][0], first)
    assert not torch.equal(first, second)


def test_what_is_wrong_is_named(root: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no pictures of class 'dog'"):
        ImageFolder(root, ("dog",))
    with pytest.raises(FileNotFoundError, match="expected a folder of pictures for every class"):
        class_names(root / "cat")
    (root / "cat" / "0.png").write_bytes(b"broken")
    with pytest.raises(ValueError, match=r"0\.png is damaged or no picture"):
        ImageFolder(root, ("cat",))[0]

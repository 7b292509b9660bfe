import hashlib
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from batchensemble.lab.data import ImageSet, procedural
from batchensemble.lab.data.corruptions import corrupt, load_cifar_c, make_cifar_c, read_origin

CLEAN = procedural(train=10, test=30)[1]
FAST = ("contrast", "gaussian_noise", "fog")


def hashes(folder):
    return {path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def made(folder, **options):
    return make_cifar_c(CLEAN, folder, **{"names": FAST, "processes": 1, "progress": False} | options)


def test_files_have_the_published_layout(tmp_path):
    made(tmp_path)
    assert sorted(hashes(tmp_path)) == ["contrast.npy", "fog.npy", "gaussian_noise.npy", "labels.npy", "origin.json"]
    images, labels = np.load(tmp_path / "fog.npy"), np.load(tmp_path / "labels.npy")
    assert (images.shape, images.dtype) == ((150, 32, 32, 3), np.uint8)
    assert labels.tolist() == CLEAN.labels.tolist() * 5
    clean = CLEAN.images.permute(0, 2, 3, 1).numpy()
    for severity in range(1, 6):
        block = images[(severity - 1) * 30 : severity * 30]
        np.testing.assert_array_equal(block, corrupt(np.ascontiguousarray(clean), "fog", severity))


def test_one_severity_is_loaded(tmp_path):
    data = load_cifar_c(made(tmp_path), "gaussian_noise", 4)
    expected = np.load(tmp_path / "gaussian_noise.npy")[90:120].transpose(0, 3, 1, 2)
    assert torch.equal(data.images, torch.from_numpy(expected.copy()))
    assert torch.equal(data.labels, CLEAN.labels)
    assert data.name == "procedural10-test-c/gaussian_noise/4"


def test_published_files_are_loaded_as_they_are(tmp_path):
    images = np.random.default_rng(0).integers(256, size=(50, 32, 32, 3), dtype=np.uint8)
    np.save(tmp_path / "fog.npy", images)
    np.save(tmp_path / "labels.npy", np.tile(np.arange(10), 5))
    assert read_origin(tmp_path) is None
    data = load_cifar_c(tmp_path, "fog", 2)
    assert torch.equal(data.images[3], torch.from_numpy(images[13]).permute(2, 0, 1))
    assert data.name == "cifar10-c/fog/2"


def test_the_origin_says_that_frost_is_not_the_original(tmp_path):
    origin = read_origin(made(tmp_path, seed=5))
    assert (origin.source, origin.seed) == ("procedural10-test", 5)
    assert "not the original frost" in origin.frost


def test_processes_change_no_byte(tmp_path):
    many = procedural(train=10, test=600)[1]  # three pieces
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        make_cifar_c(many, folder, names=["contrast", "impulse_noise"], processes=processes, progress=processes == 2)
    assert hashes(tmp_path / "1") == hashes(tmp_path / "2")


def test_what_is_there_is_not_made_again(tmp_path):
    made(tmp_path, names=["fog"])
    stamp = (tmp_path / "fog.npy").stat().st_mtime_ns
    made(tmp_path)
    assert (tmp_path / "fog.npy").stat().st_mtime_ns == stamp
    assert (tmp_path / "contrast.npy").exists()


SCRIPT = """
import sys
from batchensemble.lab.data import procedural
from batchensemble.lab.data.corruptions import make_cifar_c
clean = procedural(train=10, test=1000)[1]
make_cifar_c(clean, sys.argv[1], names=["contrast", "jpeg_compression"], processes=1, progress=False)
"""


def test_a_killed_making_goes_on_and_ends_with_the_same_files(tmp_path):
    folder, whole = tmp_path / "killed", tmp_path / "whole"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen([sys.executable, "-c", SCRIPT, folder], env=environment) as process:
        deadline = time.monotonic() + 60
        while not (started := list(folder.glob(".jpeg_compression.npy.*"))) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert started
    assert not (folder / "jpeg_compression.npy").exists()
    clean = procedural(train=10, test=1000)[1]
    for target in (folder, whole):
        make_cifar_c(clean, target, names=["contrast", "jpeg_compression"], processes=1, progress=False)
    finished = {name: found for name, found in hashes(folder).items() if not name.startswith(".")}
    assert finished == hashes(whole)


@pytest.fixture
def small_disk():
    """No file may grow beyond 100 kB: what a full disk does to a writer."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_leaves_no_half_file(tmp_path, small_disk):
    with pytest.raises(OSError, match=r"File too large; .*contrast\.npy is as it was before"):
        made(tmp_path)
    assert sorted(hashes(tmp_path)) == ["labels.npy", "origin.json"]


def test_another_set_in_the_folder_is_refused(tmp_path):
    made(tmp_path, names=["fog"])
    with pytest.raises(ValueError, match=r"holds another set.*seed=0.*seed=1"):
        made(tmp_path, seed=1)
    other = ImageSet(CLEAN.images.flip(0), CLEAN.labels, 10, CLEAN.name)
    with pytest.raises(ValueError, match="holds another set"):
        make_cifar_c(other, tmp_path, processes=1, progress=False)


def test_the_published_set_is_never_written_over(tmp_path):
    np.save(tmp_path / "fog.npy", np.zeros((5, 32, 32, 3), np.uint8))
    with pytest.raises(ValueError, match="the published one"):
        made(tmp_path)
    assert list(hashes(tmp_path)) == ["fog.npy"]


def test_bad_requests_are_refused(tmp_path):
    with pytest.raises(ValueError, match="unknown corruption 'rain'"):
        made(tmp_path, names=["rain"])
    made(tmp_path, names=["fog"])
    with pytest.raises(ValueError, match="unknown corruption 'rain'"):
        load_cifar_c(tmp_path, "rain", 1)
    with pytest.raises(ValueError, match="1 to 5, got 6"):
        load_cifar_c(tmp_path, "fog", 6)
    with pytest.raises(FileNotFoundError, match=r"snow\.npy: missing"):
        load_cifar_c(tmp_path, "snow", 1)


def test_damaged_files_are_named(tmp_path):
    made(tmp_path)
    fog, contrast = tmp_path / "fog.npy", tmp_path / "contrast.npy"
    fog.write_bytes(fog.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"fog\.npy: damaged or truncated"):
        load_cifar_c(tmp_path, "fog", 1)
    np.save(contrast, np.zeros((150, 3, 32, 32), np.uint8))
    with pytest.raises(ValueError, match=r"contrast\.npy: expected uint8 \(5 N, 32, 32, 3\), got .*\(150, 3"):
        load_cifar_c(tmp_path, "contrast", 1)
    np.save(tmp_path / "labels.npy", np.zeros(7, np.uint8))
    with pytest.raises(ValueError, match=r"labels\.npy: expected \(150,\)"):
        load_cifar_c(tmp_path, "gaussian_noise", 1)
    (tmp_path / "origin.json").write_text("{}")
    with pytest.raises(ValueError, match=r"origin\.json"):
        read_origin(tmp_path)


REAL = Path(os.environ.get("BATCHENSEMBLE_DATA", "/nowhere"))


@pytest.mark.skipif(not (REAL / "CIFAR-10-C").exists(), reason="no CIFAR-10-C here")
def test_a_set_of_the_real_cifar10_has_its_size():
    data = load_cifar_c(REAL / "CIFAR-10-C", "gaussian_noise", 1)
    assert torch.bincount(data.labels).tolist() == [1000] * 10

import hashlib
import io
import os
import pickle
import tarfile
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch

from batchensemble.lab.data import load_cifar10, load_cifar100
from batchensemble.lab.data.archive import Archive
from batchensemble.lab.data.cifar import CIFAR10, CIFAR100, read_batch


def official(content):
    """Bytes with numpy's old module names, which the official files carry."""
    return pickle.dumps(content, protocol=3).replace(b"numpy._core", b"numpy.core")


def batch(seed, key, count=6, classes=10):
    random = np.random.default_rng(seed)
    data = random.integers(256, size=(count, 3072), dtype=np.uint8)
    return {b"data": data, key: random.integers(classes, size=count).tolist()}


def contents10():
    names = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]
    batches = {name: batch(i, b"labels") for i, name in enumerate(names)}
    return batches | {"batches.meta": {b"label_names": [b"name%d" % i for i in range(10)]}}


def contents100():
    parts = {name: batch(i, b"fine_labels", classes=100) for i, name in enumerate(("train", "test"))}
    return parts | {"meta": {b"fine_label_names": [b"name%d" % i for i in range(100)]}}


def packed(root, like, contents):
    """A tiny archive in the official layout, lying in `root`, and its description."""
    files = {name: official(content) for name, content in contents.items()}
    path = root / like.file_name
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"{like.folder}/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    sums = {name: hashlib.md5(content).hexdigest() for name, content in files.items()}
    return path, replace(like, md5=hashlib.md5(path.read_bytes()).hexdigest(), files=sums)


@pytest.fixture
def tiny(tmp_path):
    return packed(tmp_path, CIFAR10, contents10())


def left_in(root):
    return sorted(path.name for path in root.iterdir())


def test_cifar10_is_read_as_it_was_packed(tmp_path, tiny):
    train, test = load_cifar10(tmp_path, archive=tiny[1])
    whole = contents10()
    pixels = np.concatenate([whole[f"data_batch_{i}"][b"data"] for i in range(1, 6)])
    assert torch.equal(train.images.flatten(1), torch.from_numpy(pixels))
    assert train.images.shape == (30, 3, 32, 32)
    assert test.labels.tolist() == whole["test_batch"][b"labels"]
    assert (train.classes, train.class_names[3], test.name) == (10, "name3", "cifar10-test")
    assert left_in(tmp_path) == ["cifar-10-batches-py", "cifar-10-python.tar.gz"]


def test_cifar100_has_fine_labels(tmp_path):
    _, archive = packed(tmp_path, CIFAR100, contents100())
    train, test = load_cifar100(tmp_path, archive=archive)
    assert train.labels.tolist() == contents100()["train"][b"fine_labels"]
    assert (len(test), test.classes, test.class_names[99]) == (6, 100, "name99")


def test_the_folder_alone_is_enough(tmp_path, tiny):
    load_cifar10(tmp_path, archive=tiny[1])
    tiny[0].unlink()
    assert len(load_cifar10(tmp_path, archive=tiny[1])[0]) == 30


def test_truncated_archive_is_named_and_nothing_is_unpacked(tmp_path, tiny):
    path, archive = tiny
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"cifar-10-python.tar.gz: damaged or truncated"):
        load_cifar10(tmp_path, archive=archive)
    assert left_in(tmp_path) == [path.name]


def test_archive_that_cannot_be_unpacked_leaves_nothing(tmp_path, tiny):
    path, archive = tiny
    path.write_bytes(path.read_bytes()[:-100])
    damaged = replace(archive, md5=hashlib.md5(path.read_bytes()).hexdigest())
    with pytest.raises(ValueError, match=r"cifar-10-python.tar.gz: cannot be unpacked"):
        load_cifar10(tmp_path, archive=damaged)
    assert left_in(tmp_path) == [path.name]


def test_archive_without_a_batch_leaves_nothing(tmp_path):
    whole = contents10()
    _, complete = packed(tmp_path, CIFAR10, whole)
    del whole["data_batch_3"]
    path, short = packed(tmp_path, CIFAR10, whole)
    with pytest.raises(FileNotFoundError, match="data_batch_3: missing"):
        load_cifar10(tmp_path, archive=replace(complete, md5=short.md5))
    assert left_in(tmp_path) == [path.name]


def test_archive_cannot_write_outside_its_folder(tmp_path, tiny):
    root = tmp_path / "root"
    root.mkdir()
    path = root / CIFAR10.file_name
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("../escaped"), io.BytesIO())
    with pytest.raises(ValueError, match="cannot be unpacked"):
        load_cifar10(root, archive=replace(tiny[1], md5=hashlib.md5(path.read_bytes()).hexdigest()))
    assert not (tmp_path / "escaped").exists()


def test_missing_and_changed_batches_are_named(tmp_path, tiny):
    load_cifar10(tmp_path, archive=tiny[1])
    test_batch = tmp_path / "cifar-10-batches-py" / "test_batch"
    content = bytearray(test_batch.read_bytes())
    content[500] ^= 1
    test_batch.write_bytes(content)
    with pytest.raises(ValueError, match="test_batch: damaged"):
        load_cifar10(tmp_path, archive=tiny[1])
    test_batch.unlink()
    with pytest.raises(FileNotFoundError, match="test_batch: missing"):
        load_cifar10(tmp_path, archive=tiny[1])


class Trap:
    def __reduce__(self):
        return os.system, ("touch sprung",)


@pytest.mark.parametrize("content", [Trap(), {b"data": [Trap()]}, np.array([Trap()], dtype=object)])
def test_a_pickle_that_calls_anything_is_refused(tmp_path, content, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("trap").write_bytes(pickle.dumps(content, protocol=3))
    with pytest.raises(pickle.UnpicklingError, match=r"refused \w+\.system"):
        read_batch(Path("trap"))
    assert left_in(tmp_path) == ["trap"]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A folder and the address under which a real server offers it."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = tmp_path / "offered"
    folder.mkdir()
    handler = partial(Quiet, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{http.server_port}/{CIFAR10.file_name}"
        http.shutdown()
        thread.join()


def test_what_is_not_there_is_downloaded(tmp_path, server):
    folder, url = server
    _, archive = packed(folder, CIFAR10, contents10())
    root = tmp_path / "new" / "root"
    train, _ = load_cifar10(root, archive=replace(archive, url=url))
    assert len(train) == 30
    assert left_in(root) == ["cifar-10-batches-py", "cifar-10-python.tar.gz"]


def test_a_download_with_another_checksum_is_refused_and_removed(tmp_path, server):
    folder, url = server
    _, archive = packed(folder, CIFAR10, contents10())
    with pytest.raises(ValueError, match=r"cifar-10-python\.tar\.gz"):
        load_cifar10(tmp_path / "root", archive=replace(archive, url=url, md5="0" * 32))
    assert left_in(tmp_path / "root") == []


def test_a_server_that_has_it_not_gives_advice(tmp_path, server):
    archive = Archive(server[1], "0" * 32, "cifar-10-batches-py", {})
    with pytest.raises(OSError, match=r"cannot be downloaded .*404.* put it at .*cifar-10-python.tar.gz"):
        load_cifar10(tmp_path / "root", archive=archive)
    assert left_in(tmp_path / "root") == []


REAL = os.environ.get("BATCHENSEMBLE_DATA", "")


@pytest.mark.skipif(not (Path(REAL) / CIFAR10.folder).exists() or not REAL, reason="no CIFAR-10 here")
def test_the_real_cifar10():
    train, test = load_cifar10()
    assert (len(train), len(test)) == (50_000, 10_000)
    assert torch.bincount(train.labels).tolist() == [5000] * 10
    assert torch.bincount(test.labels).tolist() == [1000] * 10
    assert train.class_names[0] == "airplane"
    mean, std = train.channel_statistics()
    assert mean.tolist() == pytest.approx([0.4914, 0.4822, 0.4465], abs=1e-4)
    assert std.tolist() == pytest.approx([0.2470, 0.2435, 0.2616], abs=1e-4)


@pytest.mark.skipif(not (Path(REAL) / CIFAR100.folder).exists() or not REAL, reason="no CIFAR-100 here")
def test_the_real_cifar100():
    train, test = load_cifar100()
    assert torch.bincount(train.labels).tolist() == [500] * 100
    assert torch.bincount(test.labels).tolist() == [100] * 100
    assert train.class_names[0] == "apple"

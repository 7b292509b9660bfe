"""Files are found under either name and in either folder, and a damaged one is named."""

import numpy as np
import pytest

from batchensemble.lab.data import rows as files
from batchensemble.lab.data.bandits import load_problem, sources


def lines(rows, separator):
    return "\n".join(separator.join(map(str, row)) for row in rows) + "\n"


@pytest.fixture
def mushrooms():
    letters = np.random.default_rng(0).choice(list("abc"), (8124, 22))
    return np.concatenate([np.random.default_rng(1).choice(["e", "p"], (8124, 1)), letters], 1)


def test_mushrooms_beside_other_data_and_in_their_own_folder(tmp_path, mushrooms):
    (tmp_path / "mushroom.data").write_text(lines(mushrooms, ","))
    problem = load_problem("mushroom", tmp_path)
    assert problem.looks.shape == (8124, 66)
    assert np.array_equal(problem.edible, mushrooms[:, 0] == "e")
    (tmp_path / "bandits").mkdir()
    (tmp_path / "mushroom.data").rename(tmp_path / "bandits" / "mushroom.data")
    assert load_problem("mushroom", tmp_path).looks.shape == (8124, 66)


def test_a_truncated_file(tmp_path, mushrooms):
    (tmp_path / "mushroom.data").write_text(lines(mushrooms[:5000], ","))
    with pytest.raises(
        ValueError, match=r"mushroom.data: damaged or truncated \(expected 8124 rows of 23, got 5000 x 23"
    ):
        load_problem("mushroom", tmp_path)
    (tmp_path / "mushroom.data").write_text(lines(mushrooms, ",")[:-30])
    with pytest.raises(ValueError, match=r"mushroom.data: damaged or truncated"):
        load_problem("mushroom", tmp_path)


def test_a_file_under_its_published_name_has_the_published_checksum(tmp_path, mushrooms):
    (tmp_path / "agaricus-lepiota.data").write_text(lines(mushrooms, ","))
    with pytest.raises(ValueError, match=r"damaged or truncated \(md5"):
        load_problem("mushroom", tmp_path)


def test_statlog_and_financial(tmp_path):
    rows = np.column_stack([np.random.default_rng(0).integers(0, 99, (43_500, 9)), 1 + np.arange(43_500) % 7])
    path = tmp_path / "shuttle"
    np.savetxt(path, rows, fmt="%d")
    problem = sources.read_statlog(path)
    assert problem.features.shape == (43_500, 9)
    assert np.array_equal(np.unique(problem.labels), np.arange(7))
    path.write_text("A,B\n" + lines(np.zeros((3713, 21)), " "))
    assert sources.read_financial(path).prices.shape == (3713, 21)
    path.write_text("A,B\n" + lines(np.zeros((3713, 20)), " "))
    with pytest.raises(ValueError, match="expected 3713 rows of 21, got 3713 x 20"):
        sources.read_financial(path)


def test_jester_in_both_forms(tmp_path):
    ratings = np.random.default_rng(0).integers(-1000, 1000, (19_181, 40)).astype(np.int16)
    np.savez(tmp_path / "jester_part1_40jokes.npz", ratings_x100=ratings)
    problem = load_problem("jester", tmp_path)
    assert np.allclose(problem.ratings, ratings / 100)
    (tmp_path / "jester_part1_40jokes.npz").unlink()
    np.save(tmp_path / "jester_data_40jokes_19181users.npy", ratings / 100)
    assert np.allclose(load_problem("jester", tmp_path).ratings, problem.ratings)


def test_a_truncated_jester(tmp_path):
    path = tmp_path / "jester_part1_40jokes.npz"
    np.savez(path, ratings_x100=np.zeros((19_181, 40), np.int16))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"40jokes.npz: damaged or truncated"):
        load_problem("jester", tmp_path)


def test_a_file_that_cannot_be_fetched_comes_with_advice(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"is not there and cannot be fetched; put the benchmark's"):
        load_problem("jester", tmp_path)
    with pytest.raises(FileNotFoundError, match="unpack https"):
        load_problem("covertype", tmp_path)


def test_a_file_that_is_not_there_is_fetched_by_its_checksum(tmp_path, monkeypatch, mushrooms):
    def fetch(url, md5, path):
        assert url.endswith("/mushroom/agaricus-lepiota.data")
        assert len(md5) == 32
        path.parent.mkdir()
        path.write_text(lines(mushrooms, ","))

    monkeypatch.setattr(files, "download", fetch)
    assert load_problem("mushroom", tmp_path).looks.shape == (8124, 66)


def test_adult(tmp_path):
    person = "39, Private, 77516, BA, 13, Single, {job}, Not-in-family, White, Male, 2174, 0, 40, {from_}, {pay}"
    train = [person.format(job=f"job {i % 14:02}", from_="Cuba", pay="<=50K") for i in range(28)]
    train += [person.format(job="?", from_="Cuba", pay=">50K")]
    test = [person.format(job="job 03", from_="Peru", pay=">50K.")]
    (tmp_path / "adult.full").write_text("\n".join(train) + "\n\n")
    alone = load_problem("adult", tmp_path)
    assert alone.features.shape == (28, 6 + 8)
    assert np.array_equal(alone.labels, np.arange(28) % 14)
    (tmp_path / "adult.full").rename(tmp_path / "adult.data")
    (tmp_path / "adult.test").write_text("|1x3 Cross validator\n" + test[0] + "\n")
    joined = sources.read_adult(tmp_path / "adult.data")
    assert joined.features.shape == (29, 6 + 8 + 2)  # another country, another income; '>50K.' is '>50K'
    assert joined.labels[-1] == 3

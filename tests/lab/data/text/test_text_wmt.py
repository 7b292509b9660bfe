"""The published archives: read in place, refused when they are not what was published."""

import hashlib
import io
import tarfile
from dataclasses import replace

import pytest

from batchensemble.lab.data.text import wmt


def archive(folder, **contents):
    path = folder / "training-parallel-europarl-v7.tgz"
    with tarfile.open(path, "w:gz") as tar:
        for language, text in contents.items():
            entry = tarfile.TarInfo(f"training/europarl-v7.de-en.{language}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
    return replace(wmt.EUROPARL, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


def test_both_languages_of_an_archive(tmp_path):
    published = archive(tmp_path, en=b"one\ntwo\n", de=b"eins\nzwei\n", fr=b"un\ndeux\n")
    assert list(wmt.wmt_text([published, published], tmp_path, "de")) == [("one", "eins"), ("two", "zwei")] * 2


def test_another_archive_is_refused(tmp_path):
    archive(tmp_path, en=b"one\n", de=b"eins\n")
    with pytest.raises(ValueError, match="damaged or truncated"):
        list(wmt.wmt_text([wmt.EUROPARL], tmp_path, "de"))


def test_where_there_is_no_network_it_says_what_to_do(tmp_path, monkeypatch):
    import pooch

    def unreachable(*args, **kwargs):
        raise OSError("no route to host")

    monkeypatch.setattr(pooch, "retrieve", unreachable)
    with pytest.raises(OSError, match=r"put it at .*training-parallel-nc-v9\.tgz"):
        list(wmt.wmt_text([wmt.NEWS_2014], tmp_path, "fr"))


def test_names_inside_the_archives():
    names = {one.english.format(other="fr") for one in wmt.WMT14_FRENCH}
    assert names == {
        "training/europarl-v7.fr-en.en",
        "commoncrawl.fr-en.en",
        "training/news-commentary-v9.fr-en.en",
        "un/undoc.2000.fr-en.en",
        "giga-fren.release2.fixed.en.gz",
    }
    assert wmt.NEWSTEST_2014.foreign.format(other="de") == "dev/newstest2014-deen-src.de.sgm"

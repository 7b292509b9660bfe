"""Corpora by name: found in their folders, prepared once, and what is wrong with them said."""

import lzma
import shutil
import signal
import subprocess
import sys

import pytest

from batchensemble.lab.data.text import ToyLanguage
from batchensemble.lab.studies.translation import corpora
from batchensemble.lab.studies.translation.corpora import CORPORA, load_text


@pytest.fixture
def multi30k(tmp_path, monkeypatch):
    """A stand-in with the files of the real one."""
    folder = tmp_path / "data" / "multi30k"
    folder.mkdir(parents=True)
    for seed, name in enumerate(("train", "val", "test_2016_flickr")):
        source, target = zip(*ToyLanguage(0).text(60, seed), strict=True)
        (folder / f"{name}.en").write_text("\n".join(source) + "\n")
        (folder / f"{name}.de").write_text("\n".join(target) + "\n")
    monkeypatch.setitem(CORPORA, "multi30k-de", corpora.Corpus(CORPORA["multi30k-de"].parts, "bpe", 300, 64))
    return tmp_path


def test_files_in_a_folder(multi30k):
    data = load_text("multi30k-de", multi30k / "data", multi30k / "work")
    assert (len(data.train), len(data.valid), len(data.test)) == (60, 60, 60)
    assert data.test.text("target") == [target for _, target in ToyLanguage(0).text(60, 2)]
    assert data.tallies["train"] == {"kept": 60, "empty": 0, "invalid": 0, "too_long": 0}
    assert not list(multi30k.glob("work/text/*/train/*.txt"))


def test_the_second_time_nothing_is_read(multi30k, monkeypatch):
    first = load_text("multi30k-de", multi30k / "data", multi30k / "work")
    monkeypatch.setattr("batchensemble.lab.data.text.parallel._lines", None)
    again = load_text("multi30k-de", multi30k / "data", multi30k / "work")
    assert again.train.folder == first.train.folder
    assert (again.train.source.numbers == first.train.source.numbers).all()


def test_another_text_is_prepared_anew(multi30k):
    first = load_text("multi30k-de", multi30k / "data", multi30k / "work")
    for language in ("en", "de"):
        with (multi30k / "data" / "multi30k" / f"train.{language}").open("a") as file:
            file.write("one line more\n")
    assert len(load_text("multi30k-de", multi30k / "data", multi30k / "work").train) == 61
    assert len(first.train) == 60


def test_bad_lines_are_reported(multi30k):
    with (multi30k / "data" / "multi30k" / "train.en").open("ab") as file:
        file.write(b"\n\xff\xfe\n" + b"long " * 100 + b"\n")
    with (multi30k / "data" / "multi30k" / "train.de").open("ab") as file:
        file.write(b"eins\nzwei\ndrei\n")
    tally = load_text("multi30k-de", multi30k / "data", multi30k / "work").tallies["train"]
    assert tally == {"kept": 60, "empty": 1, "invalid": 1, "too_long": 1}


def test_sides_that_do_not_match_are_refused_and_leave_nothing(multi30k):
    with (multi30k / "data" / "multi30k" / "train.de").open("a") as file:
        file.write("one line more\n")
    with pytest.raises(ValueError, match=r"train\.en has 60 lines and .*train\.de has 61"):
        load_text("multi30k-de", multi30k / "data", multi30k / "work")
    assert not list(multi30k.glob("work/text/multi30k-de-*/*"))


def test_europarl_by_years_and_newstest_files(multi30k):
    root = multi30k / "data"
    (root / "europarl_en_de").mkdir()
    (root / "newstest").mkdir()
    for language in ("en", "de"):
        text = (root / "multi30k" / f"train.{language}").read_bytes()
        for year in (2005, 2006):
            (root / "europarl_en_de" / f"{year}.{language}.xz").write_bytes(lzma.compress(text))
        for year in (2013, 2014):
            shutil.copy(root / "multi30k" / f"val.{language}", root / "newstest" / f"newstest{year}.en-de.{language}")
    sources = {part: source(root) for part, source in CORPORA["europarl-de"].parts.items()}
    assert len(list(sources["train"])) == 120
    for language in ("en", "de"):  # unpacked beside what it was unpacked from: still one year
        shutil.copy(root / "multi30k" / f"train.{language}", root / "europarl_en_de" / f"2005.{language}")
    assert len(list(CORPORA["europarl-de"].parts["train"](root))) == 120
    assert list(sources["valid"]) == list(ToyLanguage(0).text(60, 1))


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"multi30k/train\.en: not found"):
        load_text("multi30k-de", tmp_path, tmp_path / "work")
    with pytest.raises(ValueError, match="one of toy, toy-pieces, multi30k-de"):
        load_text("wmt99", tmp_path, tmp_path / "work")


def test_the_papers_corpora():
    german, french = CORPORA["wmt16-de"], CORPORA["wmt14-fr"]
    assert (german.kind, german.size, french.kind, french.size) == ("bpe", 37_000, "wordpiece", 32_000)


KILLED = """
import os, signal, sys
from pathlib import Path
from batchensemble.lab.data.text import prepared
from batchensemble.lab.studies.translation.corpora import load_text

class Killed(prepared._Side):
    def add(self, *content):
        super().add(*content)
        os.kill(os.getpid(), signal.SIGKILL)

prepared._Side = Killed
load_text("toy", None, Path(sys.argv[1]))
"""


def test_a_killed_preparation_is_done_again_and_leaves_nothing(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(list(tmp_path.glob("text/toy-*/.preparing-*"))) == 1
    assert len(load_text("toy", None, tmp_path).train) == 4000
    assert not list(tmp_path.glob("text/toy-*/.preparing-*"))

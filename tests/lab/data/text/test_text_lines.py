"""Reading text: every way it may be stored, and what damaged files say."""

import gzip
import io
import lzma
import os
import tarfile

import pytest

from batchensemble.lab.data.text import GivenText, TextFile, text_file

TEXT = "Ein Hund.\n\nÜber den Wolken\x85 \u2028noch\x0b derselbe Satz.\r\nohne Ende".encode()
LINES = ["Ein Hund.", "", "Über den Wolken\x85 \u2028noch\x0b derselbe Satz.", "ohne Ende"]


def read(source):
    return [line.decode() for line in source.lines()]


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_plain_and_compressed_files(tmp_path, ending, pack):
    (tmp_path / f"train.de{ending}").write_bytes(pack(TEXT))
    assert read(text_file(tmp_path, "train.de")) == LINES


def test_a_text_inside_an_archive(tmp_path):
    with tarfile.open(tmp_path / "corpus.tgz", "w:gz") as tar:
        for name, content in {"training/a.de": TEXT, "training/b.de.gz": gzip.compress(TEXT)}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    assert read(TextFile(tmp_path / "corpus.tgz", "training/a.de")) == LINES
    assert read(TextFile(tmp_path / "corpus.tgz", "training/b.de.gz")) == LINES
    with pytest.raises(ValueError, match=r"corpus.tgz holds no file training/c.de"):
        read(TextFile(tmp_path / "corpus.tgz", "training/c.de"))


def test_an_sgml_test_set(tmp_path):
    (tmp_path / "test.de.sgm").write_text(
        '<refset>\n<p>\n<seg id="1">Eins &amp; zwei.</seg>\n<seg id="2"> Drei.\n</seg></p></refset>', encoding="utf-8"
    )
    assert read(TextFile(tmp_path / "test.de.sgm")) == ["Eins & zwei.", "Drei."]


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"train.de: not found, nor with .gz or .xz"):
        text_file(tmp_path, "train.de")


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_a_truncated_file_is_an_error_not_a_shorter_text(tmp_path, ending, pack):
    path = tmp_path / f"train.de{ending}"
    path.write_bytes(pack(TEXT * 1000)[:-20])
    with pytest.raises(ValueError, match="damaged or truncated"):
        read(TextFile(path))


def test_a_damaged_byte_is_an_error_that_names_the_file(tmp_path):
    packed = bytearray(gzip.compress(TEXT * 1000))
    packed[30] ^= 0xFF  # inside the deflated stream, where zlib itself complains
    path = tmp_path / "train.de.gz"
    path.write_bytes(packed)
    with pytest.raises(ValueError, match=r"train\.de\.gz: damaged or truncated"):
        read(TextFile(path))


def test_a_sentence_of_an_sgml_test_set_is_one_line(tmp_path):
    (tmp_path / "test.de.sgm").write_bytes(b'<seg id="1">Eins\n  zwei.</seg>\n<seg id="2">Drei.</seg>')
    assert read(TextFile(tmp_path / "test.de.sgm")) == ["Eins zwei.", "Drei."]


def test_plain_text_in_a_folder_with_an_sgml_name(tmp_path):
    folder = tmp_path / "newstest.sgm"
    folder.mkdir()
    (folder / "test.de").write_bytes(TEXT)
    assert read(TextFile(folder / "test.de")) == LINES


def test_a_stamp_tells_a_corrected_text_of_the_same_size(tmp_path):
    path = tmp_path / "train.de"
    path.write_bytes(b"Ein Hudn.\n")
    before = TextFile(path).stamp
    path.write_bytes(b"Ein Hund.\n")
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 10_000_000))
    assert TextFile(path).stamp != before
    assert GivenText("toy", ("Hudn",)).stamp != GivenText("toy", ("Hund",)).stamp

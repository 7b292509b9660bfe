"""Pairs of lines: what cannot be used is counted, and nothing ever shifts."""

import pytest

from batchensemble.lab.data.text import ParallelText, Tally, TextFile


def texts(folder, source, target, name="train"):
    sides = []
    for language, content in (("en", source), ("de", target)):
        path = folder / f"{name}.{language}"
        path.write_bytes(content)
        sides.append(TextFile(path))
    return tuple(sides)


def test_bad_lines_are_left_out_with_their_partners(tmp_path):
    source = b"one\n\nthree\nf\xfcnf\n \t\nsix\n"
    target = "eins\nzwei\nDREI\u2028!\nvier\nf\u00fcnf\n\u00a0\n".encode()
    text = ParallelText([texts(tmp_path, source, target)])
    assert list(text) == [("one", "eins"), ("three", "DREI\u2028!")]
    assert text.tally == Tally(kept=2, empty=3, invalid=1)
    assert str(text.tally) == "2 pairs; left out: 3 without words, 1 not UTF-8"


def test_a_byte_order_mark_is_no_text(tmp_path):
    text = ParallelText([texts(tmp_path, b"\xef\xbb\xbfone\n", b"\xef\xbb\xbfeins\n")])
    assert list(text) == [("one", "eins")]


@pytest.mark.parametrize(("more", "fewer"), [("en", "de"), ("de", "en")])
def test_different_numbers_of_lines_are_refused(tmp_path, more, fewer):
    sides = {more: b"1\n2\n3\n4\n5\n", fewer: b"1\n2\n3\n"}
    text = ParallelText([texts(tmp_path, sides["en"], sides["de"])])
    with pytest.raises(ValueError, match=rf"train\.{fewer} has 3 lines and .*train\.{more} has 5: pairs would shift"):
        list(text)


def test_parts_follow_each_other_and_are_read_anew_each_time(tmp_path):
    parts = [texts(tmp_path, b"a\nb\n", b"A\n\n", "one"), texts(tmp_path, b"c\n", b"C\n", "two")]
    text = ParallelText(parts)
    assert list(text) == list(text) == [("a", "A"), ("c", "C")]
    assert text.tally == Tally(kept=2, empty=1)


def test_a_shift_in_the_first_part_is_not_made_up_for_by_the_second(tmp_path):
    parts = [texts(tmp_path, b"a\nb\n", b"A\n", "one"), texts(tmp_path, b"c\n", b"C\nD\n", "two")]
    with pytest.raises(ValueError, match=r"one\.de has 1 lines"):
        list(ParallelText(parts))

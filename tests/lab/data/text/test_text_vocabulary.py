"""Sub-words: both languages, back and forth, the same every time."""

from unicodedata import normalize

import pytest

from batchensemble.lab.data.text import END, PAD, UNKNOWN, ToyLanguage, Vocabulary

KINDS = ["bpe", "wordpiece"]
CORPUS = [side for pair in ToyLanguage(0).text(300, seed=1) for side in pair]
HARD = [
    "Isn't that  \"strange\", said the café's owner — 3.14 % of it?",
    "C'est l'été : « ça va ? »",
    "##hash </s> tags <pad> and ▁ underscores",
]


@pytest.mark.parametrize("kind", KINDS)
def test_text_comes_back_as_it_was(kind):
    vocabulary = Vocabulary.learn(CORPUS + HARD, kind, 500)
    rows = vocabulary.encode(HARD[:2] + CORPUS[:50])
    assert vocabulary.decode(rows) == HARD[:2] + CORPUS[:50]
    assert all(row[-1] == END and not {PAD, END, UNKNOWN} & set(row[:-1]) for row in rows)


def test_byte_pairs_know_every_text():
    vocabulary = Vocabulary.learn(CORPUS, "bpe", 400)
    texts = [*HARD, "日本語 🙂 Ελληνικά", normalize("NFD", "über")]
    assert vocabulary.decode(vocabulary.encode(texts)) == [normalize("NFC", text) for text in texts]


def test_word_pieces_mark_what_they_do_not_know():
    vocabulary = Vocabulary.learn(CORPUS, "wordpiece", 200)
    (row,) = vocabulary.encode(["the 日本語 and"])
    assert row.count(UNKNOWN) == 1
    assert vocabulary.decode([row]) == ["the<unk> and"]


@pytest.mark.parametrize("kind", KINDS)
def test_special_words_in_a_text_are_text(kind):
    vocabulary = Vocabulary.learn(CORPUS + HARD, kind, 500)
    (row,) = vocabulary.encode([HARD[2]])
    assert row.index(END) == len(row) - 1
    assert PAD not in row


@pytest.mark.parametrize("kind", KINDS)
def test_what_follows_the_end_is_no_text(kind):
    vocabulary = Vocabulary.learn(CORPUS, kind, 400)
    (row,) = vocabulary.encode(["the"])
    assert vocabulary.decode([[PAD, *row, *row, PAD, PAD]]) == ["the"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_corpus_gives_the_same_vocabulary(kind, tmp_path):
    files = [tmp_path / str(i) for i in range(4)]
    for path in files:
        Vocabulary.learn(CORPUS + HARD, kind, 300).save(path)  # ties among counts, and more than fit
    assert len({path.read_bytes() for path in files}) == 1
    loaded = Vocabulary.load(files[0])
    assert len(loaded) == 300
    assert loaded.decode(loaded.encode(HARD[:1])) == HARD[:1]


def test_an_unknown_kind():
    with pytest.raises(ValueError, match="one of bpe, wordpiece; got 'words'"):
        Vocabulary.learn(CORPUS, "words", 100)


def test_a_text_is_one_line_whatever_bytes_a_network_says():
    vocabulary = Vocabulary.learn(["the cat sees the dog"] * 5, "bpe", 280)
    (numbers,) = vocabulary.encode(["the\ncat\tsees\r\nthe dog"])
    assert vocabulary.decode([numbers]) == ["the cat sees the dog"]


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "vocabulary.json").write_text("{")
    with pytest.raises(ValueError, match=r"vocabulary\.json holds no vocabulary"):
        Vocabulary.load(tmp_path / "vocabulary.json")

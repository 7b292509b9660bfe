"""The toy language: one translation for every sentence, and not word for word."""

from batchensemble.lab.data.text import ToyLanguage


def test_seeds_name_languages_and_texts():
    assert list(ToyLanguage(0).text(20, 1)) == list(ToyLanguage(0).text(20, 1))
    assert list(ToyLanguage(0).text(20, 1)) != list(ToyLanguage(0).text(20, 2))
    assert list(ToyLanguage(0).text(20, 1)) != list(ToyLanguage(1).text(20, 1))


def test_a_sentence_has_one_translation():
    pairs = set(ToyLanguage(0).text(3000, 1))
    assert len({source for source, _ in pairs}) == len(pairs) > 2000


def test_words_move_and_articles_agree():
    for source, target in ToyLanguage(0).text(50, 1):
        ours, theirs = source.rstrip(".").split(" and ")[0].split(), target.rstrip(".").split(" ut ")[0].split()
        assert len(ours) == len(theirs)
        assert {ours.count("the")} == {2} == {theirs.count("ta") + theirs.count("to")}
    shortest = [pair for pair in ToyLanguage(0).text(50, 1) if len(pair[0].split()) == 5]
    assert shortest
    dictionary = {}
    for source, target in shortest:  # the a verb the b -> article a article b verb
        _, subject, verb, _, obj = source.rstrip(".").split()
        one, noun, other, second, last = target.rstrip(".").split()
        for word, translation in ((subject, (one, noun)), (obj, (other, second)), (verb, last)):
            assert dictionary.setdefault(word, translation) == translation

"""Translating: every sentence in its place, alone or among others, before and after saving."""

import sys
from dataclasses import replace

import pytest
import torch

import batchensemble as be
from batchensemble.lab.data.text import Sentences, ToyLanguage, Vocabulary
from batchensemble.lab.models.transformer import SELF_ATTENTION, transformer
from batchensemble.lab.records import Run
from batchensemble.lab.store import Store
from batchensemble.lab.studies.perform import perform
from batchensemble.lab.studies.study import Context
from batchensemble.lab.studies.translation.study import TRANSLATION, Settings
from batchensemble.lab.studies.translation.translator import Translator, bleu

TEXT = ToyLanguage(0).text(30, seed=1)
SOURCES, TARGETS = (list(side) for side in zip(*TEXT, strict=True))
VOCABULARY = Vocabulary.learn(Sentences(TEXT), "bpe", 350)


def made(members=None, init="normal"):
    net = transformer(len(VOCABULARY), "toy", longest=64, generator=torch.Generator().manual_seed(0))
    for parameter in net.parameters():
        parameter.data *= 2 if parameter.ndim > 1 else 1  # what comes next depends on what came before
    if members is None:
        return Translator(net.eval(), VOCABULARY, extra=4)
    generator = torch.Generator().manual_seed(1)
    model = be.convert(net, members, include=SELF_ATTENTION, init=init, generator=generator).eval()
    return Translator(model, VOCABULARY, extra=4)


@pytest.mark.parametrize("members", [None, 3])
def test_every_sentence_is_translated_as_it_is_alone(members):
    translator = replace(made(members), extra=64)  # the same limit for all, whoever they are translated with
    sentences = [SOURCES[0], "", *SOURCES[1:6], "   "]
    together = translator.translate(sentences)
    assert together == [translator.translate([sentence])[0] for sentence in sentences]
    assert together[1] == together[-1] == ""
    assert len({*together}) > 3
    assert replace(translator, tokens=20).translate(sentences) == together


def test_one_member_translates_as_one_network():
    translator = made(members=1)
    plain = Translator(translator.model.extract(0), VOCABULARY, extra=4)
    assert translator.translate(SOURCES[:5]) == plain.translate(SOURCES[:5])


@pytest.mark.parametrize("members", [None, 3])
def test_saved_and_loaded(members, tmp_path):
    translator = made(members)
    translator.save(tmp_path / "model")
    loaded = Translator.load(tmp_path / "model", extra=4)
    assert loaded.translate(SOURCES[:5]) == translator.translate(SOURCES[:5])
    assert type(loaded.model) is type(translator.model)


def test_a_folder_without_a_translator(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"config.json and vocabulary.json not found"):
        Translator.load(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "vocabulary.json", "network.safetensors"])
def test_a_damaged_file_is_named(tmp_path, name):
    made().save(tmp_path)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=name):
        Translator.load(tmp_path)


def test_there_are_beams():
    with pytest.raises(ValueError, match="beams must be at least 1; got 0"):
        replace(made(), beams=0)


def test_a_sentence_that_is_too_long_is_named():
    with pytest.raises(ValueError, match=r"sentence 2 has \d+ tokens; the model takes 64"):
        made().translate([SOURCES[0], "the " * 70])


def test_members_that_are_the_same_agree():
    translator = made(members=3, init="ones")
    for agreement in translator.agreement(SOURCES[:3], TARGETS[:3]):
        assert agreement.disagreement == 0
        assert agreement.mutual_information == pytest.approx(0, abs=1e-6)


def test_disagreement_is_that_of_the_extracted_members():
    translator = made(members=3)
    (found,) = translator.agreement(SOURCES[:1], TARGETS[:1])
    source, target = (torch.tensor(VOCABULARY.encode([text])) for text in (SOURCES[0], TARGETS[0]))
    before = torch.cat([torch.zeros(1, 1, dtype=torch.long), target[:, :-1]], 1)
    words = torch.stack(
        [translator.model.extract(i)(input_ids=source, decoder_input_ids=before).logits[0].argmax(-1) for i in range(3)]
    )
    pairs = [(words[i] != words[j]).float().mean() for i, j in ((0, 1), (0, 2), (1, 2))]
    assert found.disagreement == pytest.approx(sum(pairs).item() / 3)
    assert 0 < found.disagreement < 1


def test_one_network_has_nobody_to_agree_with():
    with pytest.raises(ValueError, match="no members"):
        made().agreement(SOURCES[:1], TARGETS[:1])


def test_bleu_is_sacrebleus():
    import sacrebleu

    said = [TARGETS[0], TARGETS[1], TARGETS[3]]
    score, signature = bleu(said, TARGETS[:3])
    assert score == pytest.approx(sacrebleu.corpus_bleu(said, [TARGETS[:3]]).score)
    assert 0 < score < 100
    assert "tok:13a" in signature
    assert f"version:{sacrebleu.__version__}" in signature


@pytest.mark.parametrize("missing", ["sacrebleu", "tokenizers", "transformers"])
def test_what_cannot_be_ended_is_not_begun(missing, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ModuleNotFoundError, match=rf"needs {missing}: .*pip install '\.\[text\]'"):
        perform(TRANSLATION, Run("translation", Settings(), "smoke"), Store(tmp_path), Context(work=tmp_path))
    assert not list(tmp_path.iterdir())

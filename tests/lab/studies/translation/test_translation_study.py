"""A translator is trained, learns the toy language, is found again, stopped in time, and used from the command line."""

import threading
from dataclasses import replace
from functools import partial

import pytest
import torch
from typer.testing import CliRunner

from batchensemble.cli import app
from batchensemble.lab.data.text import ToyLanguage
from batchensemble.lab.experiments.translators import TOY
from batchensemble.lab.records import Run, plain
from batchensemble.lab.store import Store
from batchensemble.lab.studies.perform import perform
from batchensemble.lab.studies.study import Context
from batchensemble.lab.studies.translation import TRANSLATION, Members, Recipe, Settings, Translator
from batchensemble.lab.studies.translation import trainer as module
from batchensemble.lab.studies.translation.corpora import CORPORA, Corpus
from batchensemble.lab.studies.translation.study import learning
from batchensemble.locks import Busy, locked

SHORT = replace(TOY, data="tiny", steps=20, epoch=5, bleu_every=2, tokens=512)


@pytest.fixture(scope="module", autouse=True)
def tiny():
    """A corpus for trainings that need not learn anything."""
    parts = {"train": 400, "valid": 20, "test": 8}
    language = ToyLanguage(0)
    sources = {part: lambda _, seed=seed, n=parts[part]: language.text(n, seed) for seed, part in enumerate(parts)}
    CORPORA["tiny"] = Corpus(sources, "wordpiece", 200, 48)
    yield
    del CORPORA["tiny"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("translation")


def run(place, recipe, seed=0, **test):
    context = Context(work=place / "work", device="cpu")
    settings = Settings(recipe, **test)
    return perform(TRANSLATION, Run("translation", settings, "smoke", seed), Store(place / "results"), context)


@pytest.fixture(scope="module")
def record(place):
    """The smoke run of BatchEnsemble."""
    torch.set_num_threads(1)
    return run(place, replace(TOY, members=Members()))


def test_the_toy_language_is_learnt(record):
    found = record.metrics
    assert found["bleu"] > 60
    assert found["perplexity"] < 1.5
    assert found["nll"] <= sum(found["member_nll"]) / 4
    assert found["steps"] == [50, 100, 150, 200]
    assert found["validation_loss"] == sorted(found["validation_loss"], reverse=True)
    assert found["bleu_steps"] == [100, 200]
    assert found["bleu_curve"][1] == found["bleu"] > found["bleu_curve"][0]
    assert found["tokens"][-1] / found["training_seconds"] == pytest.approx(found["tokens_per_second"])
    assert found["lines"]["train"] == {"kept": 4000, "empty": 0, "invalid": 0, "too_long": 0}
    assert found["bleu_signature"].startswith("nrefs:1")


def test_the_command_line_translates(record, place):
    source, target = zip(*ToyLanguage(0).text(20, seed=3), strict=True)
    command = ["translate", record.metrics["weights"], "--work", str(place / "work"), "--device", "cpu"]
    text = f"{source[0]}\n\n{source[1]}".encode()
    done = CliRunner().invoke(app, command, input=text, catch_exceptions=False)
    assert done.exit_code == 0
    first, empty, last = done.stdout.split("\n")[:-1]
    assert empty == ""
    assert {first, last} & {target[0], target[1]}
    folder = str(place / "work" / "weights" / record.metrics["weights"] / "translator")
    done = CliRunner().invoke(app, ["translate", folder, "--uncertainty", "--device", "cpu"], input=text)
    said, disagreement = done.stdout.split("\n")[0].split("\t")
    assert said == first
    assert 0 <= float(disagreement) <= 1


@pytest.mark.parametrize(
    ("options", "text", "message"),
    [
        ((), b"the \n\n" + b"the " * 500, "error: line 3 has 501 tokens; the model takes"),
        ((), b"the\n\xff", "error: line 2 is not UTF-8"),
        (("--beams", "0"), b"the", "error: beams must be at least 1; got 0"),
        (("--alpha", "nan"), b"the", "error: alpha must be finite; got nan"),
        (("--alpha", "inf"), b"the", "error: alpha must be finite; got inf"),
    ],
)
def test_the_command_line_says_what_is_wrong(record, place, options, text, message):
    command = ["translate", record.metrics["weights"], "--work", str(place / "work"), *options]
    done = CliRunner().invoke(app, command, input=text)
    assert done.exit_code == 1
    assert message in done.stderr


def test_a_translator_that_is_not_there(place):
    done = CliRunner().invoke(app, ["translate", "nobody", "--work", str(place / "work")], input=b"the\n")
    assert done.exit_code == 1
    assert "'nobody' is not a translator's folder" in done.stderr


def test_dropout_asks_the_same_network(place):
    single = run(place, SHORT)
    asked = run(place, SHORT, samples=2, rates=(0.05, 0.3))
    assert asked.metrics["weights"] == single.metrics["weights"]
    assert asked.metrics["rate"] in (0.05, 0.3)
    by_rate = asked.metrics["perplexity_by_rate"]
    assert asked.metrics["perplexity"] == min(by_rate.values()) == by_rate[str(asked.metrics["rate"])]
    assert len(list(place.glob(f"work/weights/{single.metrics['weights']}/log.jsonl"))) == 1


def test_members_and_one_network_see_the_same_batches(place):
    tokens = {
        tuple(run(place, replace(SHORT, members=members)).metrics["tokens"])
        for members in (None, Members(), Members(rows="repeated", cross_attention=True))
    }
    single, repeated = sorted(tokens)
    assert [4 * count for count in single] == list(repeated)


def test_it_stops_at_a_perplexity(place):
    curve = run(place, SHORT).metrics
    goal = torch.tensor(curve["validation_loss"][1]).exp().item() * 1.001
    stopped = run(place, replace(SHORT, until_perplexity=goal)).metrics
    assert stopped["steps"] == [5, 10]
    assert stopped["bleu_steps"] == [10], "not twice, though training stopped where a translation was due"
    assert (stopped["steps_to_perplexity"], stopped["tokens_to_perplexity"]) == (10, curve["tokens"][1])
    assert stopped["seconds_to_perplexity"] == stopped["training_seconds"]
    never = run(place, replace(SHORT, until_perplexity=1.0)).metrics
    assert never["steps_to_perplexity"] is None
    assert len(never["steps"]) == 4


def test_an_interrupted_training_goes_on(place, tmp_path, monkeypatch):
    recipe = replace(SHORT, members=Members(2))
    whole = run(place, recipe)

    def interrupted(self, model, recipe, epoch):
        if epoch == 2:
            raise KeyboardInterrupt
        return validate(self, model, recipe, epoch)

    validate = module.Trainer._validate
    monkeypatch.setattr(module.Trainer, "_validate", interrupted)
    monkeypatch.setattr(module, "Workplace", partial(module.Workplace, save_every=0.0))
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, recipe)
    assert list(tmp_path.glob("work/weights/*/last.pt")), "nothing was saved: the test shows nothing"
    monkeypatch.setattr(module.Trainer, "_validate", validate)
    resumed = run(tmp_path, recipe)
    assert resumed.metrics["validation_loss"] == whole.metrics["validation_loss"]
    folders = [root / "work" / "weights" / resumed.metrics["weights"] / "translator" for root in (tmp_path, place)]
    one, other = (Translator.load(folder).model.state_dict() for folder in folders)
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_tokens_and_time_leave_nothing_out_and_count_nothing_twice():
    line = {"tokens": 100.5, "seconds": 3.0, "evaluation_seconds": 1.0, "nll": 2.0, "validation_nll": 2.5}
    found = learning([line, {**line, "bleu": 7.0}], replace(TOY, epoch=2), processes=2)
    assert (found["steps"], found["tokens"], found["seconds"]) == ([2, 4], [402, 804], [2.0, 4.0])
    assert (found["training_seconds"], found["tokens_per_second"]) == (4.0, 201.0)
    assert (found["bleu_steps"], found["bleu_curve"]) == ([4], [7.0])


def test_recipes_are_plain_values():
    for recipe in (Recipe(), replace(TOY, members=Members(cross_attention=True), until_perplexity=4.5)):
        assert Recipe.of(plain(recipe)) == recipe
    with pytest.raises(ValueError, match="no whole number of epochs"):
        Recipe(steps=150, epoch=100)


def test_weights_of_another_text_are_not_taken_for_those_of_this_one(tmp_path, monkeypatch):
    recipe = replace(SHORT, steps=5)
    run(tmp_path, recipe)
    corrected = {
        part: lambda _, seed=seed: ToyLanguage(5).text(400, seed)
        for seed, part in enumerate(("train", "valid", "test"))
    }
    monkeypatch.setitem(CORPORA, "tiny", Corpus(corrected, "wordpiece", 200, 48))
    with pytest.raises(ValueError, match="was trained on another text of the same name"):
        run(tmp_path, recipe, samples=1)


def test_weights_in_the_making_are_waited_for(place, tmp_path):
    single = run(place, SHORT)
    asked = Run("translation", Settings(SHORT, samples=1, rates=(0.1,)), "smoke")
    context, store = Context(work=place / "work", device="cpu"), Store(tmp_path)
    held, done = threading.Event(), threading.Event()

    def make():
        with locked(place / "work" / "weights" / single.metrics["weights"]):
            held.set()
            done.wait(20)

    maker = threading.Thread(target=make)
    maker.start()
    held.wait(20)
    with pytest.raises(Busy, match="weights"):
        perform(TRANSLATION, asked, store, context)
    threading.Timer(0.5, done.set).start()
    assert perform(TRANSLATION, asked, store, replace(context, wait=True)).metrics["rate"] == 0.1
    maker.join()

"""diagnose: the numbers by hand, the verdict in plain words."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ensembles import M, convnet, ensemble, images, mlp, rows
from torch import Tensor, nn
from zoo import ZOO

import batchensemble as be
from batchensemble.ensemble.answers import Answers, Field


def data(batches: int = 2, n: int = 40) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return [(torch.randn(n, 4, generator=generator), torch.arange(n) % 3) for _ in range(batches)]


def test_numbers_by_hand() -> None:
    model, batches = ensemble(), data()
    found = be.diagnose(model, batches)
    x, y = torch.cat([x for x, _ in batches]), torch.cat([y for _, y in batches])
    probs = model.members(x).double().softmax(-1)
    mean, labels = probs.mean(0), probs.argmax(-1)
    assert (found.members, found.rows) == (M, 80)
    pairs = [(0, 1), (0, 2), (1, 2)]
    assert found.disagreement == pytest.approx(
        sum((labels[i] != labels[j]).double().mean().item() for i, j in pairs) / 3
    )
    assert found.accuracy == pytest.approx((mean.argmax(-1) == y).double().mean().item())
    assert found.member_accuracy == pytest.approx([(own == y).double().mean().item() for own in labels])
    error = 1 - sum(found.member_accuracy) / M
    assert found.disagreement_over_error == pytest.approx(found.disagreement / error)
    assert found.nll == pytest.approx(F.nll_loss(mean.log(), y).item(), rel=1e-4)
    assert found.member_nll == pytest.approx(sum(F.nll_loss(p.log(), y).item() for p in probs) / M, rel=1e-4)
    entropy = torch.special.entr(mean).sum(-1).mean().item()
    expected = torch.special.entr(probs).sum(-1).mean().item()
    assert found.entropy == pytest.approx(entropy, rel=1e-4)
    assert found.mutual_information == pytest.approx(entropy - expected, rel=1e-3)
    kl = [(probs[i] * (probs[i] / probs[j]).log()).sum(-1).mean().item() for i in range(M) for j in range(M) if i != j]
    assert found.pairwise_kl == pytest.approx(sum(kl) / len(kl), rel=1e-4)
    assert found.gain == pytest.approx(found.accuracy - sum(found.member_accuracy) / M)
    r = F.normalize(model.net[0].r.double(), dim=-1)
    cosine = ((r @ r.T).sum() - M) / (M * (M - 1))
    assert found.similarity["0"]["r"] == pytest.approx(cosine.item(), rel=1e-5)
    assert set(found.similarity) == {"0", "2"}


def test_numbers_do_not_depend_on_where_torch_puts_tensors() -> None:
    model, batches = ensemble(), data()
    expected = be.diagnose(model, batches)
    with torch.device("meta"):  # any device but that of the model
        assert be.diagnose(model, batches) == expected


def test_divergences_of_members_that_are_very_sure_are_finite() -> None:
    model = be.convert(nn.Linear(1, 2, bias=False), members=2, init="ones")
    model.net.weight.data = torch.tensor([[0.0], [200.0]])
    model.net.s.data[1] = -1
    assert be.diagnose(model, [(torch.ones(2, 1), torch.tensor([0, 1]))]).pairwise_kl == pytest.approx(200)


def test_the_same_members_are_a_collapse() -> None:
    found = be.diagnose(be.convert(mlp(), members=M, init="ones"), data())
    assert found.collapsed
    assert found.verdict.startswith("Collapsed")
    assert found.disagreement == 0
    assert found.pairwise_kl == pytest.approx(0, abs=1e-12)
    assert all(side == pytest.approx(1.0) for sides in found.similarity.values() for side in sides.values())


def test_different_members_are_not() -> None:
    found = be.diagnose(ensemble(), data())
    assert not found.collapsed
    assert "ensemble" in found.verdict or "differ" in found.verdict
    text = repr(found)  # which is what a notebook shows
    assert str(found) == text
    assert text.startswith(found.verdict)
    assert "3 members on 80 rows" in text


def test_the_verdict_says_what_is_gained() -> None:
    def verdict(accuracy: float, nll_gain: float, disagreement: float = 0.5) -> str:
        numbers = dict.fromkeys(("disagreement_over_error", "pairwise_kl", "mutual_information"), 0.5)
        numbers["disagreement"] = disagreement
        return be.Diagnosis(
            members=2, rows=9, similarity={}, entropy=1.0, member_accuracy=(0.4, 0.6), accuracy=accuracy,
            member_nll=1.0, nll=0.9, gain_error=0.02, nll_gain=nll_gain, nll_gain_error=0.02, **numbers,
        ).verdict  # fmt: skip

    assert verdict(0.6, 0.1).endswith("gains accuracy and likelihood.")
    assert verdict(0.4, 0.1).endswith("gains likelihood.")
    assert verdict(0.6, -0.03).endswith("gains accuracy.")
    assert verdict(0.6, -0.1).endswith("gains accuracy; the best member alone has the higher likelihood.")
    assert verdict(0.5, -0.1).endswith("noise of these rows; the best member alone has the higher likelihood.")
    assert "gains nothing" in verdict(0.5, 0.0)
    assert verdict(0.5, 0.0, disagreement=0.0).startswith("The members give different probabilities, the same labels")
    assert "gains nothing beyond the noise" in verdict(0.53, 0.03), "less than two standard errors"


@pytest.mark.parametrize(
    ("over_error", "information", "collapsed"),
    [(0.1, 0.02, True), (0.0, 0.0, True), (0.11, 0.02, False), (0.1, 0.021, False), (0.5, 0.5, False)],
)
def test_collapsed_members_have_the_same_answers_and_the_same_doubts(
    over_error: float, information: float, collapsed: bool
) -> None:
    found = be.diagnose(ensemble(), data())
    numbers = {"disagreement_over_error": over_error, "mutual_information": 2 * information, "entropy": 2.0}
    assert replace(found, **numbers).collapsed is collapsed


def test_it_names_the_layers_whose_members_are_most_alike() -> None:
    cosines = {"0": (0.9, 0.1), "1": (0.5, 0.6), "2": (0.3, 0.2), "3": (1.0, 0.8)}
    similarity = {name: {"r": r, "s": s} for name, (r, s) in cosines.items()}
    found = replace(be.diagnose(ensemble(), data()), similarity=similarity)
    assert str(found).endswith("most alike layers   3 (+0.80), 1 (+0.50), 2 (+0.20)")


def test_gains_by_hand() -> None:
    model, batches = ensemble(), data()
    found = be.diagnose(model, batches)
    x, y = torch.cat([x for x, _ in batches]), torch.cat([y for _, y in batches])
    probs = model.members(x).double().softmax(-1)
    right = (probs.argmax(-1) == y).double()
    ours = (probs.mean(0).argmax(-1) == y).double()
    differences = (ours - right.mean(0)).numpy()
    assert found.gain == pytest.approx(differences.mean())
    assert found.gain_error == pytest.approx(differences.std(ddof=1) / 80**0.5)
    surprise = [F.nll_loss(p.log(), y, reduction="none") for p in probs]
    best = min(surprise, key=lambda member: member.mean().item())
    gained = (best - F.nll_loss(probs.mean(0).log(), y, reduction="none")).detach().numpy()
    assert found.nll_gain == pytest.approx(gained.mean(), rel=1e-4)
    assert found.nll_gain_error == pytest.approx(gained.std(ddof=1) / 80**0.5, rel=1e-4)


def test_members_that_hardly_differ_are_not_called_an_ensemble() -> None:
    model = be.convert(mlp(), members=M, init="ones")
    with torch.no_grad():
        model.net[0].r += 0.05 * torch.randn(model.net[0].r.shape, generator=torch.Generator().manual_seed(1))
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(200, 4, generator=generator)
    labels = model.members(rows).softmax(-1).mean(0).argmax(-1)  # of which some are made wrong
    labels[:60] = (labels[:60] + 1) % 3
    found = be.diagnose(model, [(rows, labels)])
    assert found.nll < found.member_nll, "as it always is"
    assert found.nll_gain < 2 * found.nll_gain_error
    assert "gains nothing" in found.verdict or found.collapsed


def numbers(batches: int = 2, n: int = 40) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return [(torch.randn(n, 4, generator=generator), torch.randn(n, 3, generator=generator)) for _ in range(batches)]


def test_regression_by_hand() -> None:
    model, batches = ensemble(combine="mean"), numbers()
    found = be.diagnose(model, batches)
    x, y = torch.cat([x for x, _ in batches]), torch.cat([y for _, y in batches])
    outputs = model.members(x).double().detach()
    squares = (outputs - y).square().mean(2)
    mean = (outputs.mean(0) - y).square().mean(1)
    assert isinstance(found, be.RegressionDiagnosis)
    assert (found.members, found.rows) == (M, 80)
    assert found.member_rmse == pytest.approx(squares.mean(1).sqrt().tolist())
    assert found.rmse == pytest.approx(mean.mean().sqrt().item())
    assert found.spread == pytest.approx(outputs.std(0, correction=0).square().mean().sqrt().item())
    assert found.variation == pytest.approx(outputs.mean(0).std(0, correction=0).square().mean().sqrt().item())
    assert sum(error**2 for error in found.member_rmse) / M == pytest.approx(found.rmse**2 + found.spread**2)
    assert found.spread_over_error**2 == pytest.approx(1 - mean.mean().item() / squares.mean().item())
    gained = (squares[squares.mean(1).argmin()] - mean).numpy()
    assert found.mse_gain == pytest.approx(gained.mean())
    assert found.mse_gain_error == pytest.approx(gained.std(ddof=1) / 80**0.5)
    assert set(found.similarity) == {"0", "2"}


def test_the_verdict_on_numbers() -> None:
    found = be.diagnose(ensemble(combine="mean"), numbers())
    apart = replace(found, spread=0.2, variation=4.0, member_rmse=(1.0, 1.0, 1.0))

    def verdict(gain: float) -> str:
        return replace(apart, mse_gain=gain, mse_gain_error=0.1).verdict

    assert verdict(0.21).startswith("An ensemble")
    assert verdict(0.19).endswith("no better than the best of them, beyond the noise of these rows.")
    assert verdict(-0.21).endswith("the best of them alone has a smaller error than their mean.")
    assert [replace(apart, spread=spread).collapsed for spread in (0.1, 0.11)] == [True, False]
    text = str(replace(apart, rmse=0.98, mse_gain=0.0396, mse_gain_error=0.01))
    assert "error (RMSE)        0.98 (members 1, best 1)" in text
    assert "spread              0.2, 0.20 of the members' error; their mean varies by 4 over the rows" in text


def test_members_with_the_same_numbers_are_a_collapse() -> None:
    found = be.diagnose(be.convert(mlp(), members=M, init="ones", combine="mean"), numbers())
    assert found.collapsed
    assert found.verdict.startswith("Collapsed")
    assert (found.spread, found.mse_gain) == (pytest.approx(0, abs=1e-9), pytest.approx(0, abs=1e-9))


def regression(init: str, noise: float, repeated: bool = False) -> tuple[be.Ensemble, list[tuple[Tensor, Tensor]]]:
    """An ensemble trained on a signal of standard deviation 1.2 with noise, and rows it has not seen."""
    torch.manual_seed(0)
    x = torch.randn(3000, 4)
    y = (x[:, :1] * x[:, 1:2] + x[:, 2:3].sin()) + noise * torch.randn(3000, 1)
    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    model = be.convert(net, members=4, init=init, combine="mean")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(150):
        rows = torch.randint(2000, (256,))
        optimizer.zero_grad()
        answers = model.members(x[rows]) if repeated else model(x[rows])
        F.mse_loss(answers, y[rows].expand_as(answers)).backward()
        optimizer.step()
    return model, [(x[2000:], y[2000:])]


def test_noise_in_the_targets_is_no_collapse() -> None:
    """Sound members are close beside an error of noise, and far apart beside what they answer."""
    found = be.diagnose(*regression("sign", noise=5.0))
    assert max(max(sides.values()) for sides in found.similarity.values()) < 0.5
    assert found.spread_over_error < 0.1
    assert not found.collapsed
    words = f"The members differ (spread {found.spread:.2g}), but little beside the error ("
    assert found.verdict.startswith(words)
    assert found.verdict.endswith("): averaging cannot gain much. If the targets are noisy, this is expected.")


@pytest.mark.parametrize(("init", "noise"), [("ones", 5.0), ("normal(0.01)", 5.0), ("normal(0.01)", 0.1)])
def test_members_that_start_alike_on_the_same_rows_are_a_collapse(init: str, noise: float) -> None:
    found = be.diagnose(*regression(init, noise, repeated=True))
    assert found.collapsed
    assert found.verdict.startswith("Collapsed")


@pytest.mark.parametrize(("apart", "collapsed"), [(0.0, True), (1e-8, True), (0.3, False)])
def test_constant_answers_are_a_collapse_if_they_are_equal(apart: float, collapsed: bool) -> None:
    """Members that answer every row with a number of their own differ; there is no variation to go by."""
    net = nn.Linear(4, 1)
    nn.init.zeros_(net.weight)
    model = be.convert(net, members=3, combine="mean", init="sign").double()
    with torch.no_grad():
        for member, bias in enumerate(model.net.bias):
            bias.fill_(3.0 + apart * member)
    found = be.diagnose(model, [(torch.randn(100, 4).double(), 5 * torch.randn(100, 1).double())])
    assert found.variation == pytest.approx(0, abs=1e-12)
    assert found.spread == pytest.approx(apart * (2 / 3) ** 0.5, abs=1e-12)
    assert found.collapsed is collapsed
    assert ("differ (spread 0.24), but little beside" in found.verdict) is not collapsed


def test_numbers_and_targets_have_one_shape() -> None:
    model = ensemble(nn.Linear(4, 1), combine="mean")
    with pytest.raises(ValueError, match=r"targets of the same shape, got targets \(40,\), answers \(40, 1\)"):
        be.diagnose(model, [(torch.randn(40, 4), torch.randn(40))])
    later = be.convert(nn.Linear(4, 2), members=M, batch_dim=1, combine="mean", init="ones")
    x = torch.randn(6, 5, 4)
    assert be.diagnose(later, [(x, later(x, member=0).detach())]).rmse == pytest.approx(0, abs=1e-6), "(T, N, ...)"
    with pytest.raises(ValueError, match="no row"):
        be.diagnose(model, [])


def test_one_member_has_nothing_to_compare() -> None:
    found = be.diagnose(ensemble(members=1), data())
    assert "One member is one network" in found.verdict
    assert found.similarity == {}
    str(found)


def test_batches_of_every_shape() -> None:
    model, (x, y) = ensemble(), data(1)[0]
    expected = be.diagnose(model, [(x, y)])
    for batch in ([x, y], ((x,), y), ({"input": x}, y), {"input": x, "labels": y}):
        assert be.diagnose(model, [batch]) == expected
    assert be.diagnose(model, torch.utils.data.DataLoader(list(zip(x, y, strict=True)), batch_size=7)).rows == 40


@pytest.mark.parametrize("form", [lambda x, y: (x, y), lambda x, y: ({"x": x}, y), lambda x, y: {"x": x, "labels": y}])
def test_inputs_go_where_the_model_is(monkeypatch: pytest.MonkeyPatch, form) -> None:
    seen = []

    def answers(model: be.Ensemble, *args: Tensor, **kwargs: Tensor) -> Answers:
        seen.extend(tensor.device.type for tensor in (*args, *kwargs.values()))
        return Answers(torch.randn(M, 40, 3), Field(None), axis=0, class_dim=-1)

    monkeypatch.setattr(be.Ensemble, "device", torch.device("meta"))  # in the place of an accelerator
    monkeypatch.setattr(be.Ensemble, "answers", answers)
    assert be.diagnose(ensemble(), [form(*batch) for batch in data()]).rows == 80
    assert seen == ["meta", "meta"]


def test_positions_count_as_rows() -> None:
    model = ensemble(nn.Conv2d(3, 4, 1), class_dim=1)
    found = be.diagnose(model, [(images(), torch.arange(7 * 16).reshape(7, 4, 4) % 4)])
    assert found.rows == 7 * 16
    probs = model.predict(images()).probs.movedim(1, -1).reshape(-1, 4)
    assert found.accuracy == pytest.approx((probs.argmax(-1) == torch.arange(112) % 4).double().mean().item())


@pytest.mark.parametrize("class_dim", [2, 0])
def test_labels_of_a_network_whose_rows_are_not_first(class_dim: int) -> None:
    """Labels have the axes of the output, less the classes: (T, N), and (N, T) where those come before the rows."""
    net = nn.Linear(4, 3) if class_dim == 2 else nn.Sequential(nn.Linear(4, 3), ClassesFirst())
    model, x = be.convert(net, members=M, batch_dim=1, class_dim=class_dim, init="ones"), torch.randn(6, 5, 4)
    labels = net(x).argmax(class_dim)
    assert be.diagnose(model, [(x, labels)]).accuracy == 1
    with pytest.raises(ValueError, match="not one for each of the answers"):
        be.diagnose(model, [(x, labels.T)])


class ClassesFirst(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.movedim(0, -1).movedim(1, 0)  # (T, N, C) -> (C, N, T)


@pytest.mark.parametrize("name", ["llama", "t5", "marian", "bert"])
def test_labels_in_a_dict_are_compared_as_the_networks_own_loss_does(name: str) -> None:
    """Llama's is that of the next word, those of T5's and Marian's decoders are not."""
    model = ensemble(ZOO[name].make())
    _, inputs = ZOO[name].inputs(5)
    shape = model(**inputs).logits.shape[:-1]
    batch = inputs | {"labels": torch.arange(shape.numel()).reshape(shape) % 3}
    batch["labels"][0, ...] = -100
    assert be.diagnose(model, [batch, batch]).member_nll == pytest.approx(model(**batch).loss.item(), rel=1e-4)


class Tagger(nn.Module):
    """Labels every position, with a loss of its own kind."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.words, self.head, self.options = nn.Embedding(5, 4), nn.Linear(4, 3), options

    def forward(self, words: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        logits = self.head(self.words(words))
        if labels is None:
            return {"logits": logits}
        return {"loss": F.cross_entropy(logits.flatten(0, -2), labels.flatten(), **self.options), "logits": logits}


@pytest.mark.parametrize("options", [{"ignore_index": -1}, {"weight": torch.tensor([1.0, 1.0, 0.0])}])
def test_a_loss_that_reads_every_label_is_not_taken_for_a_causal_one(options: dict[str, Any]) -> None:
    net = Tagger(**options)
    words = torch.randint(5, (6, 4))
    batch = {"words": words, "labels": net(words)["logits"].argmax(-1)}
    assert be.diagnose(be.convert(net, M, init="ones"), [batch]).accuracy == 1


def test_an_encoder_decoder_is_asked_with_the_decoders_inputs_that_its_labels_make() -> None:
    model = ensemble(ZOO["t5"].make())
    _, inputs = ZOO["t5"].inputs(5)
    source = {name: value for name, value in inputs.items() if not name.startswith("decoder")}
    batch = {**source, "labels": torch.arange(30).reshape(5, 6) % 3}
    assert be.diagnose(model, [batch]).member_nll == pytest.approx(model(**batch).loss.item(), rel=1e-4)


def test_the_mode_is_kept_and_votes_are_classes() -> None:
    model = ensemble(convnet(), combine="vote").train()
    be.diagnose(model, [(images(), torch.arange(7) % 3)])
    assert model.training


@pytest.mark.parametrize("combine", [torch.amax, None])
def test_what_has_neither_classes_nor_numbers_is_refused(combine: Any) -> None:
    with pytest.raises(ValueError, match="diagnose compares classes"):
        be.diagnose(ensemble(combine=combine), data())


def test_bad_loaders_are_refused() -> None:
    with pytest.raises(ValueError, match="no row whose label counts"):
        be.diagnose(ensemble(), [(x, torch.full_like(y, -100)) for x, y in data()])
    with pytest.raises(ValueError, match="no batch"):
        be.diagnose(ensemble(), [])
    for batch in (rows(), (rows(),), {"x": rows()}):
        with pytest.raises(TypeError, match="a batch must be"):
            be.diagnose(ensemble(), [batch])
    with pytest.raises(TypeError, match=r"got Tensor; .* for a single one, pass \[\(inputs, labels\)\]"):
        be.diagnose(ensemble(), data()[0])
    for label in (3, torch.tensor(3)):  # what a Dataset gives, row by row
        with pytest.raises(TypeError, match="pass a DataLoader, not its Dataset"):
            be.diagnose(ensemble(), [(rows()[0], label)])


def test_labels_that_do_not_count_are_left_out() -> None:
    model, [(x, y), *_] = ensemble(), data()
    half = y.clone()
    half[::2] = -100
    counted = half != -100
    found, expected = (vars(be.diagnose(model, batches)) for batches in ([(x, half)], [(x[counted], y[counted])]))
    assert found.pop("similarity") == expected.pop("similarity")
    for name, value in expected.items():  # a processor may add up fewer rows in another order
        assert found[name] == pytest.approx(value, rel=1e-5), name


def test_one_row_says_nothing() -> None:
    found = be.diagnose(ensemble(), [(rows(1), torch.tensor([0]))])
    assert found.gain_error == found.nll_gain_error == float("inf")
    assert "gains nothing" in found.verdict or found.collapsed

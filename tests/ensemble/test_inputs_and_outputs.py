"""What goes into an ensemble and comes out: outputs of every shape, inputs by name and in structures."""

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from ensembles import IDS, M, N, ensemble, rows
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import batchensemble as be

close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-5)


class Pair(NamedTuple):
    scores: Tensor
    features: Tensor


@dataclass(frozen=True)
class Answer:
    features: Tensor
    logits: Tensor
    note: str = "kept"
    loss: Tensor | None = None


@dataclass
class Derived:
    logits: Tensor
    doubled: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.doubled = 2 * self.logits


@dataclass(frozen=True)
class Scaled:
    logits: Tensor
    scale: InitVar[float] = 2.0

    def __post_init__(self, scale: float) -> None:
        object.__setattr__(self, "logits", scale * self.logits)


class Shaped(nn.Module):
    """Answers in any shape, from keyword-only inputs, integers, several tensors."""

    def __init__(self, shape: Any) -> None:
        super().__init__()
        self.body, self.head, self.shape = nn.Linear(4, 6), nn.Linear(6, 3), shape

    def forward(self, x: Tensor | None = None, *, words: Tensor | None = None, scale: float = 1.0) -> Any:
        if x is None:
            x = nn.functional.one_hot(words, 4).to(self.body.weight)
        features = torch.relu(self.body(x))
        return self.shape(features, scale * self.head(features))


SHAPES: dict[str, Any] = {
    "tensor": (lambda f, y: y, lambda out: out),
    "dict": (lambda f, y: {"features": f, "logits": y, "none": None}, lambda out: out["logits"]),
    "tuple": (lambda f, y: (y, f), lambda out: out[0]),
    "list": (lambda f, y: [y, f], lambda out: out[0]),
    "named tuple": (lambda f, y: Pair(y, f), lambda out: out.scores),
    "dataclass": (lambda f, y: Answer(f, y), lambda out: out.logits),
    "derived field": (lambda f, y: Derived(y), lambda out: out.logits),
    "changed field": (lambda f, y: Scaled(y), lambda out: out.logits),
    "nested": (lambda f, y: (y, (f, {"f": [f, y]})), lambda out: out[0]),
    "ordered dict": (lambda f, y: OrderedDict(features=f, logits=y), lambda out: out["logits"]),
    "empty": (lambda f, y: (y, None, (), [], {}, "text", y.dtype), lambda out: out[0]),
    "dict subclass": (lambda f, y: Bag(logits=y, f=f), lambda out: out["logits"]),
}


class Bag(dict):
    """A dict with a type."""


every_shape = pytest.mark.parametrize(("shape", "get"), SHAPES.values(), ids=SHAPES)


@every_shape
def test_outputs_of_every_shape(shape: Any, get: Any) -> None:
    model, x = ensemble(Shaped(shape)), rows()
    plain = model.extract(1)(x)
    for output in (model(x), model.members(x), model(x, member=1), model(x, member=IDS), model.train()(x)):
        assert type(output) is type(plain)
    model.eval()
    members = get(model.members(x))
    close(members[1], get(plain))
    close(get(model(x)), members.softmax(-1).mean(0).log())
    close(get(model(x, member=IDS)), members[IDS, torch.arange(N)])
    close(model.predict(x, batch_size=3).outputs, members)
    be.verify(model, x)


@pytest.mark.parametrize("name", sorted(SHAPES.keys() - {"dict subclass"}))  # which torch 2.11 cannot copy in a graph
def test_outputs_of_every_shape_in_one_graph(name: str) -> None:
    torch.compiler.reset()
    shape, get = SHAPES[name]
    model, x = ensemble(Shaped(shape)), rows()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for output, expected in ((compiled(x), model(x)), (compiled(x, words=None, member=IDS), model(x, member=IDS))):
        assert type(output) is type(expected)
        close(get(output), get(expected))


def test_the_rest_of_an_output_keeps_its_members_and_its_values() -> None:
    model, x = ensemble(Shaped(lambda f, y: Answer(f, y, loss=y.square().mean()))), rows()
    out = model(x)
    assert out.note == "kept"
    assert out.logits.shape == (N, 3)
    assert out.features.shape == (M, N, 6)
    close(out.features[2], model.extract(2)(x).features)
    assert out.loss.shape == ()  # the mean over all members' rows, as the network computes it
    close(out.loss, torch.stack([model.extract(i)(x).loss for i in range(M)]).mean())


def test_the_field_to_combine_can_be_named() -> None:
    model, x = ensemble(Shaped(lambda f, y: Pair(y, f)), output="features", combine="mean"), rows()
    assert model(x).features.shape == (N, 6)
    assert model(x).scores.shape == (M, N, 3)
    model = ensemble(Shaped(lambda f, y: (f, y)), output="1")
    assert model(x)[1].shape == (N, 3)
    with pytest.raises(ValueError, match=r"output='nothing' is no tensor.*0: Tensor, 1: Tensor"):
        ensemble(Shaped(lambda f, y: (f, y)), output="nothing")(x)


@pytest.mark.parametrize("shape", [lambda f, y: {"loss": y.sum()}, lambda f, y: "text", lambda f, y: ()])
def test_an_output_without_an_answer_is_refused(shape: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="tensor"):
        ensemble(Shaped(shape))(rows())


@pytest.mark.parametrize(
    ("shape", "named"),
    [
        (lambda f, y: {"loss": y.sum()}, r"only loss: Tensor without axes\. "),
        (lambda f, y: [{"boxes": row} for row in y], rf"6: dict, 7: dict, and {M * N - 8} more\. "),
        (lambda f, y: (None, (f, y)), r"only 0: NoneType, 1: tuple\. "),
    ],
)
def test_what_came_instead_of_an_answer_is_named(shape: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named + r"The answer must be .* model\(x, member=i\)"):
        ensemble(Shaped(shape)).members(rows())


def test_keyword_inputs_and_integers() -> None:
    model, words = ensemble(Shaped(lambda f, y: y)), torch.arange(N) % 4
    close(model(words=words, member=IDS), model.members(words=words)[IDS, torch.arange(N)])
    assert model.train()(words=words, scale=2.0).shape == (N, 3)
    be.verify(model, words=words)
    assert len(model.predict(words=words, batch_size=2)) == N


@dataclass
class Options:
    """What the network is told, and where it writes; no tensors, and a constructor of its own."""

    factor: float
    seen: list[str]

    def __init__(self, text: str) -> None:
        self.factor, self.seen = float(text), []


class Told(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor, options: Options) -> Tensor:
        options.seen.append("call")
        return options.factor * self.layer(x)


def test_inputs_without_tensors_are_the_users_own() -> None:
    model, x, options = ensemble(Told()), rows(), Options("2")
    close(model.members(x, options)[1], model.extract(1)(x, options))
    model.predict(x, options, batch_size=4)
    assert options.seen == ["call"] * 4


class Several(nn.Module):
    """Inputs in a tuple, in a dict, with rows and without."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, pair: tuple[Tensor, Tensor], extra: dict[str, Tensor], table: Tensor) -> Tensor:
        return self.layer(pair[0] + pair[1] + extra["shift"]) + table.sum()


def test_structured_inputs() -> None:
    model, x = ensemble(Several()), rows()
    inputs = ((x, 2 * x), {"shift": x.flip(0)}, torch.ones(5))
    be.verify(model, *inputs)
    close(model(*inputs, member=IDS), model.members(*inputs)[IDS, torch.arange(N)])
    close(model.predict(*inputs, batch_size=2).outputs, model.members(*inputs))


class Packed(nn.Module):
    """Time-first rows of different lengths, in torch's default layout."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.gru, self.head = nn.Linear(4, 4), Padded(), nn.Linear(4, 3)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return self.head(self.gru(self.trunk(x), lengths))


class Padded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 4)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        y, _ = self.gru(pack_padded_sequence(x, lengths, enforce_sorted=False))
        return pad_packed_sequence(y, total_length=len(x))[0]


@pytest.mark.parametrize("options", [{}, {"fan_out": "gru"}, {"fan_out": "head"}], ids=str)
def test_lengths_go_with_time_first_rows(options: dict[str, str]) -> None:
    model = ensemble(Packed(), batch_dim=1, **options)
    x, lengths = torch.randn(5, 2 * M, 4), torch.tensor([5, 2, 3, 4, 1, 5])
    be.verify(model, x, lengths)
    close(model.predict(x, lengths, batch_size=2).outputs, model.members(x, lengths).transpose(1, 2).detach())
    be.verify(model, x[:, :1], lengths[:1])


class Last(nn.Module):
    """Answers with its state `(layers, N, size)`, or with the last step `(N, classes)` of time-first rows."""

    def __init__(self, batch_first: bool) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(4, 4, 2, batch_first=batch_first), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        y, state = self.gru(x)
        return state if self.gru.batch_first else self.head(y[-1])


@pytest.mark.parametrize(("batch_dim", "axis"), [(0, 1), (1, 0)])
def test_an_answer_is_combined_along_the_axis_that_has_its_rows(batch_dim: int, axis: int) -> None:
    model = ensemble(Last(batch_first=batch_dim == 0), batch_dim=batch_dim)
    x = torch.randn(N, 5, 4).movedim(0, batch_dim)
    members = torch.stack([model.extract(i)(x) for i in range(M)])
    close(model.members(x), members)
    close(model(x), members.softmax(-1).mean(0).log())
    rows_first = members.movedim(axis + 1, 1).detach()
    close(model.predict(x).outputs, rows_first)
    with pytest.raises(ValueError, match=f"answer has its rows on axis {axis}"):  # the last part has as many as classes
        model.predict(x, batch_size=3)
    labels = members.mean(0).argmax(-1)
    assert be.diagnose(model, [(x, labels)]).rows == labels.numel()
    model = ensemble(Last(batch_first=batch_dim == 0), batch_dim=batch_dim, combine="mean")
    assert be.diagnose(model, [(x, model(x).detach())]).rmse < 1e-6
    close(be.export_program(model, x).module()(x)[-1], model.predict(x).outputs)


LOADER = torch.utils.data.DataLoader([1.0])


@pytest.mark.parametrize("ask", ["__call__", "members", "predict", "verify"])
@pytest.mark.parametrize(
    ("inputs", "named"),
    [
        ((), "no argument"),
        ((3.0,), "input: float"),
        ((torch.tensor(1.0),), "input: a tensor of shape ()"),
        ((np.ones((5, 4)),), "input: ndarray"),
        (([[1.0, 2.0]],), "input: list"),
        ((LOADER,), "input: DataLoader"),
        ((LOADER, 2), "input: DataLoader, int"),
    ],
)
def test_what_came_instead_of_a_batch_is_named(ask: str, inputs: tuple[Any, ...], named: str) -> None:
    model = ensemble()
    call = partial(be.verify, model) if ask == "verify" else getattr(model, ask)
    words = (
        f"no argument is a tensor with rows on axis 0, so there is no batch to answer; got {named}. Arrays and lists"
    )
    with pytest.raises(ValueError, match=re.escape(words)):
        call(*inputs)


def test_what_came_by_name_is_named_too() -> None:
    with pytest.raises(ValueError, match=r"got input: ndarray\. Arrays"):
        ensemble().train()(input=np.ones((5, 4)))


class Records(Mapping):
    """A container of its own kind, as TensorDict is."""

    def __init__(self, **fields: Tensor) -> None:
        self.fields = fields

    def __getitem__(self, name: str) -> Tensor:
        return self.fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


@pytest.mark.parametrize("kind", [Records, SimpleNamespace])
def test_a_container_of_another_kind_is_named(kind: Any) -> None:
    words = (
        rf"got input: {kind.__name__}\..* what a {kind.__name__} holds is not seen: give its tensors in a dict or list"
    )
    with pytest.raises(ValueError, match=words):
        ensemble()(kind(x=rows()))


def test_a_packed_batch_is_refused() -> None:
    packed = nn.utils.rnn.pack_sequence([torch.ones(3, 4), torch.ones(2, 4)])
    with pytest.raises(TypeError, match="packed sequence has no batch axis"):
        ensemble(nn.LSTM(4, 2), combine="mean")(packed)


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_nested_batch_is_refused(layout: torch.layout) -> None:
    nested = torch.nested.nested_tensor([torch.ones(3, 4), torch.ones(2, 4)], layout=layout)
    with pytest.raises(TypeError, match="nested tensor has no batch axis"):
        ensemble()(nested)


def test_the_order_of_keywords_does_not_change_which_argument_has_the_rows() -> None:
    class Keywords(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, *, x: Tensor, table: Tensor) -> Tensor:
            return self.layer(x) + table.sum()

    model, x, table = ensemble(Keywords()), rows(), torch.ones(2, 5)
    torch.testing.assert_close(model(table=table, x=x), model(x=x, table=table))

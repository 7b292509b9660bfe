"""Which layers are meant: patterns, predicates, ties and the fan-out."""

from pathlib import Path

import pytest
import torch
from ensembles import TiedWeights
from torch import nn

import batchensemble as be


def net() -> nn.Module:
    return nn.ModuleDict(
        {
            "stem": nn.Conv2d(3, 4, 3),
            "body": nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))),
            "head": nn.Linear(4, 2),
            "head2": nn.Linear(4, 2),
        }
    )


def converted(**options) -> list[str]:
    return list(be.convert(net(), members=2, **options).conversion.converted)


def left(**options) -> dict[str, str]:
    return dict(be.convert(net(), members=2, **options).conversion.left)


ALL = ["stem", "body.0", "body.1.0", "head", "head2"]


@pytest.mark.parametrize(
    ("include", "names"),
    [
        ("body", ["body.0", "body.1.0"]),
        ("body.*", ["body.0", "body.1.0"]),
        ("body.1", ["body.1.0"]),
        ("*.0", ["body.0", "body.1.0"]),
        ("head", ["head"]),
        ("head*", ["head", "head2"]),
        ("head?", ["head2"]),
        ("head[2]", ["head2"]),
        (["stem", "head"], ["stem", "head"]),
        (("head",), ["head"]),
        (lambda name, module: isinstance(module, nn.Linear) and module.out_features == 2, ["head", "head2"]),
        ("*", ALL),
        (None, ALL),
    ],
)
def test_include(include, names: list[str]) -> None:
    assert converted(include=include) == names
    rest = left(include=include)
    assert set(rest) == {*ALL, "body.1.1"} - set(names)
    assert all(rest[name] == "not included" for name in rest if name != "body.1.1")


@pytest.mark.parametrize("exclude", ["body", ["body.0", "body.1"], lambda name, _: name.startswith("body")])
def test_exclude_wins(exclude) -> None:
    assert converted(include="*", exclude=exclude) == ["stem", "head", "head2"]
    assert converted(exclude=exclude) == ["stem", "head", "head2"]
    assert left(include="*", exclude=exclude)["body.0"] == "excluded"


@pytest.mark.parametrize("exclude", ["*.out_proj", "attention", lambda name, _: name.endswith("out_proj")])
def test_an_attention_is_excluded_with_its_parts(exclude) -> None:
    net = nn.ModuleDict({"attention": nn.MultiheadAttention(4, 2), "head": nn.Linear(4, 2)})
    done = be.convert(net, members=2, exclude=exclude).conversion
    assert done.converted == ("head",)
    assert done.left == {"attention": "excluded"}


@pytest.mark.parametrize("argument", ["include", "exclude"])
@pytest.mark.parametrize("pattern", ["nothing", ["head", "nothing"], "Head", "body.9"])
def test_a_pattern_that_matches_nothing_is_refused(argument: str, pattern) -> None:
    with pytest.raises(ValueError, match=f"{argument}=.*matches no module"):
        converted(**{argument: pattern})


@pytest.mark.parametrize("argument", ["include", "exclude"])
@pytest.mark.parametrize("rule", [3, ["head", 3], nn.Linear, [nn.Linear]])
def test_what_is_no_pattern_is_refused(argument: str, rule) -> None:
    with pytest.raises(TypeError, match=f"{argument} must be glob patterns on names, or a predicate"):
        converted(**{argument: rule})


@pytest.mark.parametrize("options", [{"include": "body.1.1"}, {"exclude": "*"}, {"include": []}])
def test_nothing_selected_is_refused(options) -> None:
    with pytest.raises(ValueError, match="nothing was selected that can be converted"):
        converted(**options)


def test_nothing_to_convert_at_all() -> None:
    with pytest.raises(ValueError, match="no layers at all"):
        be.convert(nn.ReLU(), members=2)


# ---- ties ------------------------------------------------------------------------------------------------------------


def test_tied_weights_are_left_and_listed() -> None:
    model = be.convert(TiedWeights(), members=2)
    assert model.conversion.converted == ("middle",)
    assert model.conversion.left["head"] == "tied: shares its weight with 'embed'"
    assert model.net.head.weight is model.net.embed.weight
    plain = model.extract(0)
    assert plain.head.weight is plain.embed.weight


def test_tied_weights_named_are_converted_and_untied_by_extract() -> None:
    model = be.convert(TiedWeights(), members=2, include=["head", "middle"], generator=torch.Generator().manual_seed(0))
    assert model.conversion.converted == ("middle", "head")
    assert model.net.head.weight is model.net.embed.weight  # one slow weight
    be.verify(model, torch.arange(12).reshape(4, 3) % 6)
    plain = model.extract(0)
    assert plain.head.weight is not plain.embed.weight
    assert torch.equal(plain.embed.weight, model.net.embed.weight)


@pytest.fixture
def tied_gpt2() -> nn.Module:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=20, n_embd=8, n_layer=1, n_head=2, n_positions=8, bos_token_id=0)
    assert config.tie_word_embeddings
    return transformers.GPT2LMHeadModel(config)


@pytest.mark.parametrize("include", [["lm_head", "transformer.wte"], ["lm_head"], ["transformer.wte"]])
def test_the_config_of_an_untied_network_says_so(tied_gpt2: nn.Module, tmp_path: Path, include: list[str]) -> None:
    plain = be.convert(tied_gpt2, members=2, include=include).extract(1).eval()
    assert not plain.config.tie_word_embeddings
    assert tied_gpt2.config.tie_word_embeddings
    plain.save_pretrained(tmp_path)
    x = torch.arange(6).reshape(2, 3)
    assert torch.equal(type(plain).from_pretrained(tmp_path).eval()(x).logits, plain(x).logits)


def test_the_config_of_a_tied_network_stays(tied_gpt2: nn.Module) -> None:
    tied_gpt2.transformer.ln_f = nn.Sequential(*[nn.LayerNorm(8, elementwise_affine=False) for _ in range(2)])
    plain = be.convert(tied_gpt2, members=2, norm="member").extract(1)
    assert plain.lm_head.weight is plain.transformer.wte.weight
    assert plain.config.tie_word_embeddings


def test_a_module_in_two_places_stays_one() -> None:
    shared = nn.Linear(4, 4)
    net = nn.Sequential(shared, nn.ReLU(), nn.Sequential(shared))
    model = be.convert(net, members=2)
    assert model.conversion.converted == ("0",)
    assert model.net[0] is model.net[2][0]
    plain = model.extract(1)
    assert plain[0] is plain[2][0]
    assert be.convert(net, members=2, include="2.0").conversion.converted == ("0",)  # by any of its names
    be.verify(model, torch.randn(3, 4))


def test_a_tie_inside_an_attention_is_seen() -> None:
    net = nn.ModuleDict({"attention": nn.MultiheadAttention(4, 2), "twin": nn.Linear(4, 4), "head": nn.Linear(4, 2)})
    net["twin"].weight = net["attention"].out_proj.weight
    done = be.convert(net, members=2).conversion
    assert done.converted == ("head",)
    assert "tied" in done.left["attention"]
    assert "tied" in done.left["twin"]


# ---- the fan-out -----------------------------------------------------------------------------------------------------


def test_only_what_is_registered_from_the_fan_out_on() -> None:
    assert converted(fan_out="body.1") == ["body.1.0", "head", "head2"]
    assert left(fan_out="body.1")["stem"] == "registered before the fan-out"
    assert converted(fan_out="body.1", include=["stem", "head"]) == ["stem", "head"]


@pytest.mark.parametrize("include", [None, "head"])
def test_a_fan_out_that_is_not_there(include) -> None:
    with pytest.raises(ValueError, match="fan_out='tail' names no module"):
        converted(fan_out="tail", include=include)

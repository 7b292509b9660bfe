"""Networks that were not written for this library go through convert, dealing, routing, files and back."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from zoo import TARGETS, WORDS, ZOO, Case

import batchensemble as be

M = 3
N = 5
# float64 in and out, but Llama's and T5's norms compute in float32
close = partial(torch.testing.assert_close, rtol=1e-5, atol=1e-6)
every_network = pytest.mark.parametrize("case", ZOO.values(), ids=ZOO)
every_cut = pytest.mark.parametrize(
    "case", [c for c in ZOO.values() if c.cut], ids=[n for n, c in ZOO.items() if c.cut]
)
SHAPED = ["bert", "gpt2", "marian", "gru, time first"]


def randomise(model: nn.Module) -> nn.Module:
    """Values that no initialisation would give, scaled so that deep networks stay finite."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            generator = torch.Generator().manual_seed(sum(map(ord, name)))
            noise = torch.randn(parameter.shape, generator=generator).to(parameter)
            inputs = math.prod(parameter.shape[1:])
            is_vector = parameter.ndim == 1 or parameter.shape[0] == M
            parameter.copy_(noise * 0.4 + 0.8 if is_vector else noise / inputs**0.5)
    return model


def ensemble(case: Case, **options: Any) -> nn.Module:
    return randomise(be.convert(case.make().double(), members=M, **case.options | options)).eval()


def inputs(case: Case, n: int = N) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args, kwargs = case.inputs(n)
    return tuple(map(double, args)), {name: double(value) for name, value in kwargs.items()}


def double(value: Any) -> Any:
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value


def answer(output: Any) -> Tensor:
    """The tensor that the ensemble combines."""
    if isinstance(output, Mapping):
        return output["logits"]
    return output[0] if isinstance(output, tuple) else output


def mixed(members: Tensor, ids: Tensor, batch_dim: int) -> Tensor:
    """Row n as member ids[n] answered it, from (members, N, ...) answers."""
    rows = [members[i].select(batch_dim, n) for n, i in enumerate(ids.tolist())]
    return torch.stack(rows, batch_dim)


@every_network
def test_ones_reproduce_the_network(case: Case) -> None:
    net, (args, kwargs) = case.make().double().eval(), inputs(case)
    members = answer(be.convert(net, members=M, init="ones", **case.options).eval().members(*args, **kwargs))
    close(members, answer(net(*args, **kwargs)).expand_as(members))
    with torch.no_grad():  # torch's Transformer layers take another path here
        close(answer(net(*args, **kwargs)), members[0])


# Sizes that could be mistaken for one another: rows for words, all copies for target words; and a lone row.
@pytest.mark.parametrize("n", [N, WORDS, TARGETS // M, 1])
@every_network
def test_members_equal_their_plain_networks(case: Case, n: int) -> None:
    model, (args, kwargs) = ensemble(case), inputs(case, n)
    members = answer(model.members(*args, **kwargs))
    assert members.shape[0] == M
    assert members.shape[1 + case.batch_dim] == n
    assert not torch.allclose(members[0], members[1], rtol=1e-2)
    be.verify(model, *args, **kwargs)
    for i in range(M):
        close(answer(model.extract(i).eval()(*args, **kwargs)), members[i])


@every_network
def test_rows_choose_their_members(case: Case) -> None:
    model, (args, kwargs) = ensemble(case), inputs(case)
    members = answer(model.members(*args, **kwargs))
    close(answer(model(*args, member=1, **kwargs)), members[1])
    ids = torch.tensor([2, 0, 0, 1, 2])
    close(answer(model(*args, member=ids, **kwargs)), mixed(members, ids, case.batch_dim))


@every_network
def test_training_deals_rows(case: Case) -> None:
    model, (args, kwargs) = ensemble(case), inputs(case)
    members = answer(model.members(*args, **kwargs))
    for module in model.train().modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) or "BatchNorm" in type(module).__name__:
            module.eval()  # batch statistics would mix the rows
    dealt = answer(model(*args, **kwargs))
    close(dealt, mixed(members, torch.arange(N) * M // N, case.batch_dim))


@every_network
def test_files_keep_every_bit(case: Case, tmp_path) -> None:
    model, (args, kwargs) = ensemble(case), inputs(case)
    model.save(tmp_path / "ensemble.safetensors")
    again = be.load(tmp_path / "ensemble.safetensors", case.make().double()).eval()
    assert torch.equal(answer(again(*args, **kwargs)), answer(model(*args, **kwargs)))
    assert torch.equal(answer(again.members(*args, **kwargs)), answer(model.members(*args, **kwargs)))


@every_network
def test_a_step_trains_the_shared_weights_and_the_members_that_had_rows(case: Case) -> None:
    model, (args, kwargs) = ensemble(case).train(), inputs(case)
    slow, fast = decayed_and_scaled(be.parameter_groups(model, lr=0.1, weight_decay=0.01, fast_lr_scale=0.5))
    before = [p.detach().clone() for p in slow + fast]
    optimiser = torch.optim.SGD(be.parameter_groups(model, lr=0.1, weight_decay=0.01, fast_lr_scale=0.5), lr=0.1)
    answer(model(*args, member=torch.tensor([2, 0, 0, 2, 2]), **kwargs)).square().mean().backward()
    optimiser.step()
    changed = [(p != old).flatten(1).any(1) for p, old in zip(slow + fast, before, strict=True)]
    assert all(c.any() for c in changed[: len(slow)])
    assert torch.equal(torch.stack(changed[len(slow) :]).any(0), torch.tensor([True, False, True]))


def decayed_and_scaled(groups: list[dict[str, Any]]) -> tuple[list[Tensor], list[Tensor]]:
    slow = [p for g in groups if g["weight_decay"] == 0.01 for p in g["params"] if p.requires_grad]
    fast = [p for g in groups if g["lr"] == 0.05 for p in g["params"]]
    assert slow
    assert fast
    assert all(p.shape[0] == M for p in fast)
    return slow, fast


@every_network
def test_dealt_rows_train_every_member(case: Case) -> None:
    model, (args, kwargs) = ensemble(case).train(), inputs(case)
    _, fast = decayed_and_scaled(be.parameter_groups(model, lr=0.1, weight_decay=0.01, fast_lr_scale=0.5))
    answer(model(*args, **kwargs)).square().mean().backward()
    assert torch.stack([p.grad.flatten(1).ne(0).any(1) for p in fast]).any(0).all()


@every_cut
def test_a_late_fan_out_changes_the_cost_and_not_the_answer(case: Case) -> None:
    late, (args, kwargs) = ensemble(case, fan_out=case.cut), inputs(case)
    converted = list(be.summary(late).converted)
    early = ensemble(case, include=converted)
    assert list(be.summary(early).converted) == converted
    early.load_state_dict(late.state_dict())
    members = answer(early.members(*args, **kwargs))
    close(answer(late.members(*args, **kwargs)), members)
    close(answer(late(*args, **kwargs)), answer(early(*args, **kwargs)))
    ids = torch.tensor([1, 2, 0, 1, 2])
    close(answer(late(*args, member=ids, **kwargs)), mixed(members, ids, case.batch_dim))
    close(answer(late(*args, member=2, **kwargs)), members[2])


@every_cut
def test_a_late_fan_out_runs_the_trunk_once(case: Case) -> None:
    late, (args, kwargs) = ensemble(case, fan_out=case.cut), inputs(case)
    seen: list[tuple[str, int]] = []
    for name, module in late.net.named_modules():
        if name == case.cut or isinstance(module, nn.Linear | nn.Conv2d) or type(module).__name__ == "Conv1D":
            module.register_forward_hook(lambda _m, _x, out, name=name: seen.append((name, rows_in(out))))
    late.members(*args, **kwargs)
    inside = next(index for index, (name, _) in enumerate(seen) if name.startswith(case.cut))
    assert {rows for _, rows in seen[:inside]} == {N}
    assert {rows for _, rows in seen[inside:]} == {N * M}


def rows_in(output: Any) -> int:
    return len(output[0] if isinstance(output, tuple) else output)


@every_cut
def test_a_late_fan_out_takes_a_lone_row(case: Case) -> None:
    late, (args, kwargs) = ensemble(case, fan_out=case.cut), inputs(case, 1)
    be.verify(late, *args, **kwargs)


@pytest.mark.parametrize("n", [N, 1])
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "vit", "t5", "marian"])
def test_a_late_fan_out_and_the_networks_own_loss(name: str, n: int) -> None:
    case = ZOO[name]
    late, (args, kwargs) = ensemble(case, fan_out=case.cut), inputs(case, n)
    early = ensemble(case, include=list(be.summary(late).converted))
    early.load_state_dict(late.state_dict())
    shape = early(*args, **kwargs).logits.shape[:-1]
    kwargs |= {"labels": torch.arange(shape.numel()).reshape(shape) % 3, "num_items_in_batch": torch.tensor(n)}
    close(late(*args, **kwargs).loss, early(*args, **kwargs).loss)


def test_labels_that_are_read_before_a_late_fan_out_are_named() -> None:
    late, (args, kwargs) = ensemble(ZOO["t5"], fan_out=ZOO["t5"].cut), inputs(ZOO["t5"])
    labels = kwargs.pop("decoder_input_ids")
    with pytest.raises(RuntimeError, match=r"`labels` come once for every member.*decoder_input_ids"):
        late(*args, **kwargs, labels=labels)


WHOLE_CUTS = [
    ("bert", "bert.encoder.layer.1.attention.self"),  # the residual travels through a module, which repeats it
    ("t5", "encoder.block.1"),  # the decoder's own input is still one copy
    ("marian", "model.encoder.layers.1"),
    ("encoder-decoder", "decoder.layers.1"),
    ("encoder-decoder, time first", "decoder.layers.1"),
    ("unet", "join1"),
    ("lstm tagger, packed", "head"),
]
TORN_CUTS = [
    ("gpt2", "transformer.h.1.attn"),
    ("vit", "vit.layers.1.mlp"),
    ("resnet18", "layer3.1.conv1"),
    ("unet", "bottom"),
    ("encoder", "layers.1.linear1"),
]


@pytest.mark.parametrize("n", [N, 1])
@pytest.mark.parametrize(("name", "cut"), WHOLE_CUTS)
def test_a_cut_in_an_unusual_place_is_right(name: str, cut: str, n: int) -> None:
    model, (args, kwargs) = ensemble(ZOO[name], fan_out=cut), inputs(ZOO[name], n)
    be.verify(model, *args, **kwargs)


@pytest.mark.parametrize("n", [N, 1])
@pytest.mark.parametrize(("name", "cut"), TORN_CUTS)
def test_a_cut_through_a_residual_is_refused(name: str, cut: str, n: int) -> None:
    model, (args, kwargs) = ensemble(ZOO[name], fan_out=cut), inputs(ZOO[name], n)
    with pytest.raises(RuntimeError, match=cut):
        model.members(*args, **kwargs)


@pytest.mark.parametrize("n", [TARGETS // M, 1])
def test_what_the_trunk_answers_is_every_members_own(n: int) -> None:
    """Whisper answers with its encoder's states, too: six frames, as many as three members have rows."""
    model, (args, kwargs) = ensemble(ZOO["whisper"], fan_out="model.decoder.layers.1"), inputs(ZOO["whisper"], n)
    be.verify(model, *args, **kwargs)


def test_the_trunk_answers_a_lone_row_with_one_row() -> None:
    case = ZOO["bert"]
    late, (args, kwargs) = ensemble(case, fan_out=case.cut), inputs(case, 1)
    embedded = late.members(*args, **kwargs, output_hidden_states=True).hidden_states[0]
    assert embedded.shape[-3] == 1


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5", "whisper"])
def test_embeddings_of_positions_are_refused(name: str) -> None:
    model, (args, kwargs) = ensemble(ZOO[name], include="*"), inputs(ZOO[name])
    with pytest.raises(ValueError, match=r"wpe|position|relative"):
        model.members(*args, **kwargs)


@pytest.mark.parametrize("name", SHAPED)
def test_structured_outputs_keep_their_type_and_fields(name: str) -> None:
    case = ZOO[name]
    model, (args, kwargs) = ensemble(case), inputs(case)
    plain = case.make().double().eval()(*args, **kwargs)
    for output in (model(*args, **kwargs), model(*args, member=1, **kwargs), model.members(*args, **kwargs)):
        assert type(output) is type(plain)
        assert fields(output) == fields(plain)
    assert answer(model(*args, **kwargs)).shape == answer(plain).shape


def fields(output: Any) -> list[Any]:
    return list(output) if isinstance(output, Mapping) else [None] * len(output)


@pytest.mark.parametrize("name", ["bert", "vit", "gpt2", "llama", "t5"])
def test_hidden_states_of_every_member(name: str) -> None:
    case = ZOO[name]
    model, (args, kwargs) = ensemble(case), inputs(case)
    key = "encoder_hidden_states" if name == "t5" else "hidden_states"
    hidden = model.members(*args, **kwargs, output_hidden_states=True)[key]
    for i in range(M):
        alone = model.extract(i).eval()(*args, **kwargs, output_hidden_states=True)[key]
        assert len(hidden) == len(alone) > 2
        for ours, theirs in zip(hidden, alone, strict=True):
            close(ours[i], theirs)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "vit", "marian", "t5", "whisper"])
def test_attention_implementations_agree(name: str, implementation: str) -> None:
    case = ZOO[name]
    model, (args, kwargs) = ensemble(case), inputs(case)
    model.net.set_attn_implementation(implementation)
    be.verify(model, *args, **kwargs)


@pytest.mark.parametrize("name", ["gpt2", "llama", "t5", "marian"])
def test_a_cache_continues_where_each_member_stopped(name: str) -> None:
    case = ZOO[name]
    model, (args, kwargs) = ensemble(case), inputs(case)
    kwargs.pop("attention_mask")
    token = "decoder_input_ids" if "decoder_input_ids" in kwargs else "input_ids"
    words = kwargs[token]
    whole = model(*args, **kwargs, member=1).logits
    first = model(*args, **kwargs | {token: words[:, :-1]}, member=1)
    second = model(*args, **kwargs | {token: words[:, -1:]}, member=1, past_key_values=first.past_key_values)
    close(second.logits[:, -1], whole[:, -1])


def test_the_networks_own_loss_is_the_dealt_loss() -> None:
    case = ZOO["bert"]
    model, (args, kwargs) = ensemble(case).train(), inputs(case)
    labels = torch.arange(N) % 3
    output = model(*args, **kwargs, labels=labels)
    close(output.loss, nn.functional.cross_entropy(output.logits, labels))


def test_the_networks_own_loss_is_the_members_mean_in_evaluation() -> None:
    """Trainer's evaluation also says how many labels there are."""
    case = ZOO["llama"]
    model, (args, kwargs) = ensemble(case), inputs(case)
    labels = kwargs["input_ids"]
    alone = [model.extract(i).eval()(*args, **kwargs, labels=labels).loss for i in range(M)]
    close(model(*args, **kwargs, labels=labels).loss, torch.stack(alone).mean())
    count = torch.tensor(labels[:, 1:].numel())
    close(model(*args, **kwargs, labels=labels, num_items_in_batch=count).loss, torch.stack(alone).mean())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet18", "unet", "encoder", "bert", "gpt2", "llama", "vit", "t5"])
def test_networks_compile_without_a_graph_break(name: str) -> None:
    case = ZOO[name]
    model, (args, kwargs) = ensemble(case), inputs(case)
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        close(answer(compiled(*args, **kwargs)), answer(model(*args, **kwargs)))
        ids = torch.tensor([2, 0, 0, 1, 2])
        close(answer(compiled(*args, member=ids, **kwargs)), answer(model(*args, member=ids, **kwargs)))

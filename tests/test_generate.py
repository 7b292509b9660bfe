"""Decoding as an ensemble: Transformers' own search over the members' mean probability."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from zoo import transformers_tiny

import batchensemble as be

MEMBERS = 3
NEW = 6
SEARCHES = {
    "greedy": {},
    "beams": {"num_beams": 4, "length_penalty": 0.6},
    "sampling": {"do_sample": True},
    "sampled beams": {"num_beams": 3, "do_sample": True},
}


def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = {"vocab_size": 40, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2}
    special = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 2}
    return T5ForConditionalGeneration(T5Config(**sizes, **special, dropout_rate=0.0))


NETWORKS = {
    "gpt2": transformers_tiny.gpt2,
    "llama": transformers_tiny.llama,
    "marian": transformers_tiny.marian,
    "t5": t5,
}


def ensemble(name, members=MEMBERS, **options):
    """In double precision, with weights so large that the next word depends on those before it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = NETWORKS[name]().double()
    net.generation_config.forced_eos_token_id = None
    for parameter in net.parameters():
        parameter.data *= 6 if parameter.ndim > 1 else 1
    generator = torch.Generator().manual_seed(1)
    return be.convert(net, members, init="normal", generator=generator, **options).eval()


def prompts(rows=3, length=5):
    return torch.randint(3, 40, (rows, length), generator=torch.Generator().manual_seed(2))


def options(**search):
    return {"max_new_tokens": NEW, "pad_token_id": 0, "attention_mask": torch.ones(3, 5, dtype=torch.long), **search}


def decode(function, *args, **kwargs):
    torch.manual_seed(7)
    return function(*args, **kwargs)


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES.keys())
@pytest.mark.parametrize("name", NETWORKS)
def test_one_member_decodes_as_its_extracted_network(name, search):
    model = ensemble(name, members=1)
    ours = decode(be.generate, model, prompts(), **options(**search))
    plain = decode(model.extract(0).generate, prompts(), **options(**search))
    assert torch.equal(ours, plain)


def test_guidance_without_a_prompt_asks_the_ensemble_too():
    model = ensemble("gpt2", members=1)
    guided = options(guidance_scale=1.5)
    assert torch.equal(be.generate(model, prompts(), **guided), model.extract(0).generate(prompts(), **guided))


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES.keys())
@pytest.mark.parametrize("name", NETWORKS)
def test_the_cache_changes_nothing(name, search):
    model = ensemble(name)
    cached = decode(be.generate, model, prompts(), **options(**search))
    slow = decode(be.generate, model, prompts(), **options(**search), use_cache=False)
    assert torch.equal(cached, slow)


def member_log_probs(model, prompt, sequences):
    """Log-probabilities `(members, N, steps, words)` of the extracted networks, which see the sequences as given."""
    outputs = []
    for i in range(len(model)):
        net = model.extract(i)
        if net.config.is_encoder_decoder:
            logits = net(input_ids=prompt, decoder_input_ids=sequences[:, :-1]).logits
        else:
            logits = net(input_ids=sequences[:, :-1]).logits[:, prompt.shape[1] - 1 :]
        outputs.append(logits.log_softmax(-1))
    return torch.stack(outputs).detach()


@pytest.mark.parametrize("name", NETWORKS)
def test_every_step_is_the_mean_of_the_extracted_members(name):
    model, prompt = ensemble(name), prompts()
    report = {"return_dict_in_generate": True, "output_logits": True, "min_new_tokens": NEW}
    found = be.generate(model, prompt, **options(**report))
    expected = member_log_probs(model, prompt, found.sequences).exp().mean(0)
    torch.testing.assert_close(torch.stack(found.logits, 1).exp(), expected.float())


@pytest.mark.parametrize("name", NETWORKS)
def test_beams_are_scored_by_the_mean_of_the_extracted_members(name):
    model, prompt = ensemble(name), prompts()
    report = {"return_dict_in_generate": True, "output_scores": True, "min_new_tokens": NEW}
    found = be.generate(model, prompt, **options(**SEARCHES["beams"], **report), num_return_sequences=4)
    steps = member_log_probs(model, prompt.repeat_interleave(4, 0), found.sequences).exp().mean(0).log()
    words = found.sequences[:, -NEW:]
    expected = steps.gather(-1, words[..., None]).sum((1, 2)) / NEW**0.6
    torch.testing.assert_close(found.sequences_scores, expected.float())
    moves = found.beam_indices[:, 1:] != found.beam_indices[:, :-1]
    assert moves.any(), "no beam ever moved: the test shows nothing"


def test_members_disagree():
    model, prompt = ensemble("marian"), prompts()
    alone = {tuple(be.generate(model, prompt, **options(), member=i).flatten().tolist()) for i in range(MEMBERS)}
    assert len(alone) == MEMBERS


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES.keys())
@pytest.mark.parametrize("name", NETWORKS)
def test_one_member_of_several(name, search):
    model = ensemble(name)
    ours = decode(be.generate, model, prompts(), **options(**search), member=2)
    assert torch.equal(ours, decode(model.extract(2).generate, prompts(), **options(**search)))


@pytest.mark.parametrize("search", [{}, SEARCHES["beams"]], ids=["greedy", "beams"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_member_for_each_row(name, search):
    model, ids = ensemble(name), torch.tensor([2, 0, 1])
    ours = be.generate(model, prompts(), **options(**search, min_new_tokens=NEW), member=ids)
    for row, member in enumerate(ids.tolist()):
        expected = model.extract(member).generate(prompts(), **options(**search, min_new_tokens=NEW))
        assert torch.equal(ours[row], expected[row])


@pytest.mark.parametrize("name", NETWORKS)
def test_several_sequences_for_a_row(name):
    model, ids = ensemble(name), torch.tensor([2, 0, 1])
    several = be.generate(model, prompts(), **options(num_beams=4, num_return_sequences=2))
    assert len(several) == 6
    of_one = be.generate(model, prompts(), **options(do_sample=True, top_k=1, num_return_sequences=2), member=ids)
    greedy = be.generate(model, prompts(), **options(), member=ids)
    assert torch.equal(of_one, greedy.repeat_interleave(2, 0))


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_padded_prompts_decode_as_they_do_alone(name):
    model, prompt = ensemble(name), prompts()
    mask = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1], [0, 1, 1, 1, 1]])
    padded = torch.where(mask.bool(), prompt, 0)
    together = be.generate(model, padded, **options(num_beams=2) | {"attention_mask": mask})
    for row, (words, real) in enumerate(zip(padded, mask.bool(), strict=True)):
        alone = be.generate(
            model, words[real][None], **options(num_beams=2) | {"attention_mask": mask[row][real][None]}
        )
        new = alone.shape[1] - int(real.sum())
        assert torch.equal(together[row, 5 : 5 + new], alone[0, -new:])


CUTS = {"gpt2": "transformer.h.1", "llama": "model.layers.1", "marian": "model.decoder.layers.1"}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES.keys())
@pytest.mark.parametrize("name", CUTS)
def test_a_late_fan_out_decodes_as_an_early_one(name, search):
    late = ensemble(name, fan_out=CUTS[name])
    converted = set(late.conversion.converted)
    early = ensemble(name, include=lambda layer, _: layer in converted)
    early.load_state_dict(late.state_dict())
    ours = decode(be.generate, late, prompts(), **options(**search))
    assert torch.equal(ours, decode(be.generate, early, prompts(), **options(**search)))


def test_a_late_fan_out_takes_a_single_row():
    model = ensemble("gpt2", fan_out="transformer.h.1")
    single = options() | {"attention_mask": torch.ones(1, 5, dtype=torch.long)}
    found = be.generate(model, prompts()[:1], **single, min_new_tokens=NEW)
    assert torch.equal(found, be.generate(model, prompts(), **options(min_new_tokens=NEW))[:1])


def test_a_fan_out_in_the_encoder_is_refused():
    model = ensemble("marian", fan_out="model.encoder.layers.1")
    with pytest.raises(ValueError, match="is in the encoder"):
        be.generate(model, prompts(), **options())


@pytest.mark.parametrize("name", ["gpt2", "marian"])
def test_a_static_cache(name):
    model = ensemble(name)
    beams = options(num_beams=2)
    assert torch.equal(
        be.generate(model, prompts(), **beams, cache_implementation="static"), be.generate(model, prompts(), **beams)
    )


def test_in_training_mode_it_evaluates_and_goes_back():
    model = ensemble("marian")
    expected = be.generate(model, prompts(), **options())
    model.train()
    for layer in model.net.model.encoder.layers:
        layer.dropout = 0.9
    frozen = model.net.model.encoder.layers[0]
    frozen.eval()
    assert torch.equal(be.generate(model, prompts(), **options()), expected)
    assert [module for module in model.modules() if not module.training] == list(frozen.modules())


def test_threads_may_ask_for_different_members():
    model = ensemble("marian")
    expected = [be.generate(model, prompts(), **options(), member=i) for i in range(MEMBERS)]

    def ask(i):
        return [be.generate(model, prompts(), **options(), member=i) for _ in range(3)]

    with ThreadPoolExecutor(MEMBERS) as pool:
        found = list(pool.map(ask, range(MEMBERS)))
    assert all(torch.equal(one, other) for ones, other in zip(found, expected, strict=True) for one in ones)


def test_the_network_stays_what_it_was():
    model = ensemble("gpt2")
    kind, names = type(model.net), set(vars(model.net))
    be.generate(model, prompts(), **options())
    assert type(model.net) is kind
    assert set(vars(model.net)) == names


def test_what_cannot_generate_is_refused():
    with pytest.raises(TypeError, match="Linear does not generate"):
        be.generate(be.convert(nn.Linear(2, 2), 2), torch.ones(1, 2))
    with pytest.raises(IndexError, match="member must lie in"):
        be.generate(ensemble("gpt2"), prompts(), member=3)
    with pytest.raises(ValueError, match="one id for each of the 3 rows"):
        be.generate(ensemble("gpt2"), prompts(), member=torch.tensor([0]))
    with pytest.raises(ValueError, match="no common answer"):
        be.generate(ensemble("gpt2", combine=None), prompts())
    with pytest.raises(ValueError, match="got batch_dim=1"):
        be.generate(ensemble("gpt2", batch_dim=1), prompts())


def test_without_transformers_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[text\]'"):
        be.generate(be.convert(nn.Linear(3, 2), members=2), torch.zeros(1, 3))

"""Transformers' Trainer takes an ensemble for one of its networks, as docs/integrations.md says."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    ConvNextConfig,
    ConvNextForImageClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Trainer,
    TrainingArguments,
)

import batchensemble as be

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
WORDS = torch.randint(3, 50, (96, 6), generator=torch.Generator().manual_seed(0))
LABELS = (WORDS[:, 0] < 25).long()
ROWS = [{"input_ids": words, "labels": label} for words, label in zip(WORDS, LABELS, strict=True)]


def bert() -> BertForSequenceClassification:
    torch.manual_seed(0)
    return BertForSequenceClassification(BertConfig(vocab_size=50, max_position_embeddings=8, num_labels=2, **SIZES))


def ensemble(**options: Any) -> be.Ensemble:
    return be.convert(bert(), members=4, init="normal", generator=torch.Generator().manual_seed(0), **options)


def trainer(model: be.Ensemble, folder: Path, rows: list[dict[str, Any]] = ROWS, **options: Any) -> Trainer:
    settings = {"num_train_epochs": 2, "per_device_train_batch_size": 16, "save_strategy": "no", "use_cpu": True}
    quiet = {"report_to": [], "disable_tqdm": True, "logging_strategy": "no"}
    arguments = TrainingArguments(folder, label_names=["labels"], **{**settings, **quiet, **options})
    optimizer = torch.optim.AdamW(be.parameter_groups(model, lr=1e-2, weight_decay=0.01))
    return Trainer(model, arguments, train_dataset=rows[:64], eval_dataset=rows[64:], optimizers=(optimizer, None))


def trained(folder: Path, resume: Path | None = None, **options: Any) -> be.Ensemble:
    model = ensemble()
    trainer(model, folder, **options).train(resume_from_checkpoint=str(resume) if resume else None)
    return model


@pytest.mark.parametrize("fan_out", [None, "bert.encoder.layer.1"])
def test_split_batches_train_every_member_and_evaluation_combines_them(fan_out, tmp_path) -> None:
    model = ensemble(fan_out=fan_out)
    before = model.net.classifier.r.detach().clone()
    run = trainer(model, tmp_path)
    run.train()
    assert (model.net.classifier.r != before).any(1).all()
    found = run.predict(ROWS[64:])
    answer = model.eval()(WORDS[64:]).logits
    torch.testing.assert_close(torch.tensor(found.predictions), answer.detach())
    own = be.mean_loss(cross_entropy, model.members(WORDS[64:]).logits, LABELS[64:])  # not that of the answer
    assert found.metrics["test_loss"] == pytest.approx(own.item(), rel=1e-5)


def test_gradient_checkpointing_changes_nothing(tmp_path) -> None:
    plain, checked = trained(tmp_path), trained(tmp_path, gradient_checkpointing=True)
    assert checked.net.is_gradient_checkpointing
    torch.testing.assert_close(checked.state_dict(), plain.state_dict())


def test_a_checkpoint_continues_a_training_and_is_a_state_dict(tmp_path) -> None:
    whole = trained(tmp_path, save_strategy="epoch")
    first, last = tmp_path / "checkpoint-4", tmp_path / "checkpoint-8"
    torch.testing.assert_close(trained(tmp_path, resume=first).state_dict(), whole.state_dict(), rtol=0, atol=0)
    again = ensemble()
    again.load_state_dict(load_file(last / "model.safetensors"))
    torch.testing.assert_close(again.state_dict(), whole.state_dict(), rtol=0, atol=0)
    with pytest.raises(ValueError, match="not written by batchensemble"):
        be.load(last / "model.safetensors", bert())


def test_tied_weights_are_saved_by_the_ensemble_itself(tmp_path) -> None:
    def gpt2() -> GPT2LMHeadModel:
        return GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=8, n_embd=16, n_layer=1, n_head=2))

    model = be.convert(gpt2(), members=2)
    run = trainer(model, tmp_path, [{"input_ids": words, "labels": words} for words in WORDS])
    run.train()
    with pytest.raises(RuntimeError, match="share memory"):
        run.save_model(tmp_path)
    model.save(tmp_path / "ensemble.safetensors")
    again = be.load(tmp_path / "ensemble.safetensors", gpt2()).eval()
    torch.testing.assert_close(again(WORDS).logits, model.eval()(WORDS).logits)


def convnext() -> tuple[Any, list[dict[str, Any]], str]:
    net = ConvNextForImageClassification(ConvNextConfig(hidden_sizes=[8] * 4, depths=[1] * 4, num_labels=2))
    images = torch.randn(16, 3, 32, 32)
    rows = [{"pixel_values": image, "labels": torch.tensor(i % 2)} for i, image in enumerate(images)]
    return net, rows, "classifier"


def llama() -> tuple[Any, list[dict[str, Any]], str]:
    net = LlamaForCausalLM(LlamaConfig(vocab_size=50, **SIZES))
    return net, [{"input_ids": words, "labels": words} for words in WORDS[:16]], "model.layers.0.mlp.up_proj"


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("make", [convnext, llama])  # one takes no count of labels, the other shifts its labels
def test_gradients_are_those_of_the_network(make: Any, steps: int, smoothing: float, tmp_path) -> None:
    torch.manual_seed(0)
    net, rows, layer = make()
    model, found = be.convert(net, members=2, init="ones"), []
    for one, inside in ((net, net), (model, model.net)):
        weight, optimizer = inside.get_submodule(layer).weight, torch.optim.SGD(one.parameters(), lr=0.0)
        optimizer.register_step_pre_hook(lambda *_, weight=weight: found.append(weight.grad.clone()))
        arguments = TrainingArguments(
            tmp_path,
            max_steps=1,
            per_device_train_batch_size=16 // steps,
            gradient_accumulation_steps=steps,
            max_grad_norm=0,
            label_smoothing_factor=smoothing,
            label_names=["labels"],
            save_strategy="no",
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            logging_strategy="no",
        )
        Trainer(one, arguments, train_dataset=rows, optimizers=(optimizer, None)).train()
    torch.testing.assert_close(*found)

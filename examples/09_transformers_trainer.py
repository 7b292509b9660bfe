"""Transformers' Trainer on an ensemble: split batches, combined evaluation, gradient checkpointing, saving."""

import tempfile
from pathlib import Path

import torch
from transformers import BertConfig, BertForSequenceClassification, EvalPrediction, Trainer, TrainingArguments

import batchensemble as be

torch.manual_seed(0)
config = BertConfig(
    vocab_size=100,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=32,
    num_labels=2,
)
net = BertForSequenceClassification(config)  # for one from `from_pretrained`: init="normal(0.1)"
model = be.convert(net, members=4, init="normal")

# A toy task: are most words of a sentence below 50?
words = torch.randint(3, 100, (1536, 12))
labels = ((words < 50).sum(1) > 6).long()
data = [{"input_ids": row, "labels": label} for row, label in zip(words, labels, strict=True)]


def metrics(result: EvalPrediction) -> dict[str, float]:
    log_probs = torch.tensor(result.predictions)  # of all members, combined
    answers = torch.tensor(result.label_ids)
    nll = torch.nn.functional.nll_loss(log_probs, answers)
    return {"accuracy": (log_probs.argmax(-1) == answers).float().mean().item(), "nll": nll.item()}


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        num_train_epochs=10,
        per_device_train_batch_size=64,
        gradient_checkpointing=True,
        label_names=["labels"],  # the Trainer would look for them in the class, which is Ensemble
        save_strategy="no",
        use_cpu=True,  # it is tiny
        report_to=[],
        disable_tqdm=True,
    )
    groups = be.parameter_groups(model, lr=3e-3, weight_decay=0.01)  # the Trainer's own would decay r and s
    optimizers = (torch.optim.AdamW(groups), None)  # None: the Trainer makes its schedule
    sets = {"train_dataset": data[:1024], "eval_dataset": data[1024:]}
    trainer = Trainer(model, arguments, **sets, optimizers=optimizers, compute_metrics=metrics)
    trainer.train()
    found = trainer.evaluate()
    print(f"accuracy {found['eval_accuracy']:.3f}, nll {found['eval_nll']:.3f}")

    model.save(Path(folder, "ensemble.safetensors"))  # not trainer.save_model, which `be.load` does not read
    again = be.load(Path(folder, "ensemble.safetensors"), BertForSequenceClassification(config)).eval()
    print("loaded:", torch.equal(again(words[:8]).logits, model.eval()(words[:8]).logits))
    model.extract(0).save_pretrained(folder)  # a member for `from_pretrained`

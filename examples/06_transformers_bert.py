"""Transformers' BERT as an ensemble: padding masks, output classes and its own loss pass through."""

import torch
from transformers import BertConfig, BertForSequenceClassification

import batchensemble as be

torch.manual_seed(0)
config = BertConfig(
    vocab_size=100,
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=32,
    num_labels=2,
)
bert = BertForSequenceClassification(config)  # BertForSequenceClassification.from_pretrained(...) in real life
model = be.convert(bert, members=4, init="ones", fan_out="bert.encoder.layer.2")  # two of three layers run once

# A toy task: does the word 7 occur? One label in ten is wrong.
words = torch.randint(3, 100, (1024, 12))
words[::2, 1] = 7
mask = (torch.arange(12) < torch.randint(4, 13, (1024, 1))).long()
labels = ((words == 7) & (mask == 1)).any(1) ^ (torch.rand(1024) < 0.1)
data = {"input_ids": words, "attention_mask": mask, "labels": labels.long()}
be.verify(model.eval(), input_ids=words[:8], attention_mask=mask[:8])

groups = be.parameter_groups(model, lr=3e-3, weight_decay=0.01, fast_lr_scale=3.0)
optimizer = torch.optim.AdamW(groups)
model.train()
for epoch in range(4):
    for rows in torch.randperm(512).split(64):
        output = model(**{name: value[rows] for name, value in data.items()})
        optimizer.zero_grad()
        output.loss.backward()  # the network's own loss on dealt rows is the paper's
        optimizer.step()
    print(f"epoch {epoch + 1}: loss {output.loss.item():.3f}")

held_out = {name: value[512:] for name, value in data.items()}
print(be.diagnose(model, [held_out]))  # members that start equal may stay alike; it says so
model.eval()
print(type(model(input_ids=words[:2], attention_mask=mask[:2])).__name__, "as Transformers gives it")
print(type(model.extract(0)).__name__, "as Transformers saves it")

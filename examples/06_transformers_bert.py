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
# From scratch. For a network from `from_pretrained`: init="normal(0.1)", fan_out="bert.encoder.layer.2".
model = be.convert(BertForSequenceClassification(config), members=4, init="normal")

# A toy task: are most words of a sentence below 50?
words = torch.randint(3, 100, (2560, 12))
mask = (torch.arange(12) < torch.randint(4, 13, (2560, 1))).long()
labels = ((words < 50) * mask).sum(1) * 2 > mask.sum(1)
data = {"input_ids": words, "attention_mask": mask, "labels": labels.long()}
be.verify(model.eval(), input_ids=words[:8], attention_mask=mask[:8])

optimizer = torch.optim.AdamW(be.parameter_groups(model, lr=3e-3, weight_decay=0.01))
model.train()
for epoch in range(25):
    for rows in torch.randperm(512).split(64):
        output = model(**{name: value[rows] for name, value in data.items()})
        optimizer.zero_grad()
        output.loss.backward()  # the network's own loss: the rows are split over the members, each on its own share
        optimizer.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: loss {output.loss.item():.3f}")

held_out = {name: value[512:] for name, value in data.items()}
print(be.diagnose(model, [held_out]))  # do the members differ, and what is averaging them worth?
model.eval()
print(type(model(input_ids=words[:2], attention_mask=mask[:2])).__name__, "as Transformers returns it")
print(type(model.extract(0)).__name__, "as Transformers saves it")

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
bert = BertForSequenceClassification(
    config
)  # BertForSequenceClassification.from_pretrained(...) in real life
model = be.convert(
    bert, members=4, init="ones", fan_out="bert.encoder.layer.2"
)  # two of three layers run once

# A toy task: does the word 7 occur?
words = torch.randint(3, 100, (512, 12))
words[::2, 1] = 7
mask = (torch.arange(12) < torch.randint(4, 13, (512, 1))).long()
labels = ((words == 7) & (mask == 1)).any(1).long()
be.verify(model.eval(), input_ids=words[:8], attention_mask=mask[:8])

groups = be.parameter_groups(model, lr=3e-3, weight_decay=0.01, fast_lr_scale=3.0)
optimizer = torch.optim.AdamW(groups)
model.train()
for epoch in range(4):
    for rows in torch.randperm(512).split(64):
        output = model(input_ids=words[rows], attention_mask=mask[rows], labels=labels[rows])
        optimizer.zero_grad()
        output.loss.backward()  # dealt rows: the paper's loss
        optimizer.step()
    print(f"epoch {epoch + 1}: loss {output.loss.item():.3f}")

model.eval()
p = model.predict(input_ids=words, attention_mask=mask)
print(f"accuracy {(p.label == labels).float().mean():.3f}, disagreement {p.disagreement.mean():.3f}")
print(type(model(input_ids=words[:2], attention_mask=mask[:2])).__name__, "as Transformers gives it")
print(type(model.extract(0)).__name__, "as Transformers saves it")

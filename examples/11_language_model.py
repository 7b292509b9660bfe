"""A language model with members: train only their vectors on new text, see which tokens they doubt, generate."""

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

import batchensemble as be

WORDS = 48


def text(steps: tuple[int, ...], lines: int) -> Tensor:
    """Lines of a toy language: each counts up by one of `steps`, modulo the number of words."""
    start, step = torch.randint(WORDS, (lines, 1)), torch.tensor(steps)[torch.randint(len(steps), (lines, 1))]
    return (start + step * torch.arange(12)) % WORDS


torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=WORDS,
    hidden_size=64,
    num_hidden_layers=4,
    num_attention_heads=4,
    intermediate_size=128,
    eos_token_id=None,
)
net = LlamaForCausalLM(config)  # stands for one from `from_pretrained`
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
for _ in range(200):
    lines = text((1, 2, 3, 4), 64)
    optimizer.zero_grad()
    net(input_ids=lines, labels=lines).loss.backward()
    optimizer.step()

# Four members in the last two layers; what comes before runs once. In place: a large network is not copied.
model = be.convert(net, members=4, init="normal(0.1)", fan_out="model.layers.2", copy=False)
be.verify(model, input_ids=lines[:4])
be.freeze_shared_(model)  # train only the members' own vectors
own = [parameter for parameter in model.parameters() if parameter.requires_grad]
print(f"each member trains {sum(one.numel() for one in own) // 4:,} of {be.summary(model).network:,} parameters")

model.train()
optimizer = torch.optim.AdamW(own, lr=3e-2, weight_decay=0.0)
for step in range(151):
    lines = text((5,), 16)  # the new text
    loss = model.members(input_ids=lines, labels=lines).loss  # every member on every line; any batch size works
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step:3}: loss {loss.item():.2f}")

for name, steps in {"the new text": (5,), "a text never seen": (7,)}.items():
    p = model.predict(input_ids=text(steps, 200))  # a distribution over the next word, for every word
    print(f"{name:17}  the members disagree by {p.mutual_information[:, 2:].mean():.3f} nats")
print("generated:", be.generate(model, text((5,), 1)[:, :4], max_new_tokens=5)[0].tolist())

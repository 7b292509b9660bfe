"""A noisy table: one network overfits it, members that share their weights hardly do."""

import torch
from sklearn.datasets import make_classification
from torch import nn
from torch.nn.functional import cross_entropy

import batchensemble as be

# 2,000 rows to train on, 4,000 to test on; one label in five is drawn at random.
table, classes = make_classification(6000, 20, n_informative=8, n_classes=3, flip_y=0.2, random_state=0)
x, y = torch.tensor(table, dtype=torch.float32), torch.tensor(classes)  # standardise your own columns
x_train, y_train, x_test, y_test = x[:2000], y[:2000], x[2000:], y[2000:]


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Linear(20, 256), nn.ReLU()),
        *(nn.Linear(256, 256), nn.ReLU()),
        nn.Linear(256, 3),
    )


def train(model: nn.Module, groups: list[dict], epochs: int) -> str:
    """Train in an ordinary loop; an ensemble in training splits every batch over its members."""
    optimizer = torch.optim.AdamW(groups)
    model.train()
    for _ in range(epochs):
        for rows in torch.randperm(2000).split(64):
            optimizer.zero_grad()
            cross_entropy(model(x_train[rows]), y_train[rows]).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        answer = model(x_test)  # an ensemble's answer is the log of its members' mean probability
    return f"{(answer.argmax(-1) == y_test).float().mean():.1%}  {cross_entropy(answer, y_test):.3f}"


print("epochs   one network     4 members       16 members     (accuracy, NLL)")
for epochs in (5, 10, 20, 40):
    net = network()
    found = [train(net, [{"params": net.parameters(), "lr": 1e-3, "weight_decay": 3e-4}], epochs)]
    for members in (4, 16):
        model = be.convert(network(), members)
        found.append(train(model, be.parameter_groups(model, lr=1e-3, weight_decay=3e-4), epochs))
    print(f"{epochs:6}   {'    '.join(found)}")

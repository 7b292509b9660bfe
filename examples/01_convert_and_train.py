"""Convert a network into four members and train it in an ordinary loop, on scikit-learn's bundled digits."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset, random_split

import batchensemble as be

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
digits = TensorDataset(torch.tensor(images / 16, dtype=torch.float32).view(-1, 1, 8, 8), torch.tensor(labels))
train, test = random_split(digits, [1400, len(digits) - 1400])

net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(16, 32, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(32 * 16, 10),
)
model = be.convert(net, members=4)
be.verify(model, test[:16][0])  # every member equals a plain network with its weights
print(be.summary(model))

groups = be.parameter_groups(model, lr=0.05, weight_decay=1e-4)
optimizer = torch.optim.SGD(groups, momentum=0.9, nesterov=True)
for epoch in range(8):
    model.train()
    for x, y in DataLoader(train, batch_size=64, shuffle=True):
        loss = cross_entropy(model(x), y)  # the rows of x are split over the members
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}: loss {loss.item():.3f}")

x, y = test[:]
prediction = model.predict(x)
members = (prediction.member_probs.argmax(-1) == y).float().mean(1)
print(f"members  {', '.join(f'{accuracy:.3f}' for accuracy in members.tolist())}")
print(f"ensemble {(prediction.label == y).float().mean():.3f}")
print(be.diagnose(model, DataLoader(test, batch_size=128)))

"""RCL's controller: an LSTM that makes a choice for each layer in turn, and learns from the reward."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from batchensemble.seeds import seeded


class Controller(nn.Module):
    """Actor and critic: an LSTM with two layers of 100 units that runs over the network's layers.

    Args:
        layers: number of layers, each of which needs a choice.
        choices: number of options per layer.
        seed: seeds its weights and choices.
        lr: learning rate of Adam.
    """

    def __init__(self, layers: int, choices: int, seed: int, lr: float = 1e-3) -> None:
        super().__init__()
        self.layers = layers
        self.generator = torch.Generator().manual_seed(seed)
        with seeded(seed):
            self.embedding = nn.Embedding(choices + 1, 32)  # the last one stands for nothing chosen yet
            self.memory = nn.LSTM(32, 100, num_layers=2, batch_first=True)
            self.actor = nn.Linear(100, choices)
            self.critic = nn.Linear(100, 1)
        self._nothing = choices
        self._optimizer = torch.optim.Adam(self.parameters(), lr=lr)

    @torch.no_grad()
    def choose(self) -> list[int]:
        """Draw a choice for every layer, one after another."""
        chosen: list[int] = []
        for place in range(self.layers):
            log_chances, _ = self._judged([*chosen, 0])
            chosen.append(int(torch.multinomial(log_chances[place].exp(), 1, generator=self.generator)))
        return chosen

    def learn(self, chosen: list[int], reward: float) -> None:
        """Take one step of actor and critic: choices that earned more than expected become more likely."""
        log_chances, expected = self._judged(chosen)
        taken = log_chances.gather(1, torch.tensor(chosen)[:, None]).squeeze(1)
        advantage = reward - expected
        loss = -(taken * advantage.detach()).sum() + advantage.square().sum()
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()

    def _judged(self, chosen: list[int]) -> tuple[Tensor, Tensor]:
        """Log-probabilities `(layers, choices)` given earlier choices, and the expected reward `(layers,)`."""
        shifted = torch.tensor([[self._nothing, *chosen[:-1]]])
        states, _ = self.memory(self.embedding(shifted))
        return F.log_softmax(self.actor(states[0]), 1), self.critic(states[0]).squeeze(1)

"""Shared by the algorithms that learn: pull the arms in turn at first, keep a history, train every so often."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from batchensemble.lab.methods.bandits.algorithm import Setting
from batchensemble.lab.methods.bandits.history import History, Seen
from batchensemble.lab.methods.bandits.network import (
    Layer,
    NetworkTraining,
    RMSProp,
    answer,
    draw_layers,
    forward,
    sizes,
    squared_error,
)


class Agent(ABC):
    """Pulls the arm whose (sampled) value is largest.

    Args:
        setting: the game.
        every: pulls between two trainings.
        first_pulls: pulls of every arm, in turn, before values decide.
    """

    def __init__(self, setting: Setting, every: int, first_pulls: int) -> None:
        self.setting, self.streams = setting, setting.streams
        self.history = History(setting.trials, setting.context_dim, setting.steps, self.streams.device)
        self._every, self._in_turn = every, first_pulls * setting.arms

    @torch.no_grad()
    def act(self, contexts: Tensor) -> Tensor:
        """The arm to pull in every trial."""
        pulls = len(self.history)
        if pulls < self._in_turn:
            return torch.full((len(contexts),), pulls % self.setting.arms, device=contexts.device)
        return self.values(contexts).argmax(1)

    def update(self, contexts: Tensor, arms: Tensor, rewards: Tensor) -> None:
        """Remember the observation, and learn when it is due."""
        self.history.add(contexts, arms, rewards)
        if len(self.history) % self._every == 0:
            self.learn()

    @abstractmethod
    def values(self, contexts: Tensor) -> Tensor:
        """The estimated reward of every arm, `(trials, arms)`."""

    @abstractmethod
    def learn(self) -> None:
        """Learn from the history."""


class NetworkAgent(Agent):
    """A network, or several in each trial, that predicts every arm's reward.

    Args:
        setting: the game.
        training: how it is trained.
        nets: networks per trial.
    """

    def __init__(self, setting: Setting, training: NetworkTraining, nets: int = 1) -> None:
        super().__init__(setting, training.every, training.first_pulls)
        self.training, self.nets = training, nets
        self.parameters = [tensor.requires_grad_() for tensor in self.start()]
        self.optimizer = RMSProp(self.parameters, training)

    def start(self) -> list[Tensor]:
        """Draw the parameters to train: weight and bias of every layer."""
        layers = draw_layers(self.streams, self.sizes, self.training.init, self.nets)
        return [tensor for layer in layers for tensor in layer]

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """`(in, out)` of every layer."""
        return sizes(self.setting.context_dim, self.training.hidden, self.setting.arms)

    def layers(self) -> list[Layer]:
        """The current layers of all networks."""
        pairs = zip(self.parameters[::2], self.parameters[1::2], strict=True)
        return [Layer(weight, bias) for weight, bias in pairs]

    def drop(self, columns: Tensor) -> Tensor:
        """The hidden features unchanged; subclasses may apply dropout."""
        return columns

    def values(self, contexts: Tensor) -> Tensor:
        """The network's outputs."""
        return answer(self.layers(), contexts, self.drop)

    def learn(self) -> None:
        """Run one training."""
        if self.training.reset_lr:
            self.optimizer.restart()
        for _ in range(self.training.steps):
            self.optimizer.step(self.loss(self.minibatch()))

    def minibatch(self) -> Seen:
        """Draw rows of the history, separately for every network."""
        rows = self.streams.integers(len(self.history), self.nets * self.training.batch)
        return self.history.rows(rows, self.nets)

    def loss(self, seen: Seen) -> Tensor:
        """The sum over networks of their mean squared errors."""
        return squared_error(forward(self.layers(), seen.contexts, self.drop)[1], seen).sum()

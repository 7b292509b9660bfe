"""Initial Gaussian weights: means near zero, standard deviations near `exp(-5)`, so that means are learned first."""

from torch import Tensor

from batchensemble.lab.methods.bandits.streams import Streams


def draw_mean(streams: Streams, *shape: int) -> Tensor:
    """Draw trainable means `N(0, 0.05)`, `(trials, *shape)`."""
    return (0.05 * streams.normal(*shape)).requires_grad_()


def draw_rho(streams: Streams, *shape: int) -> Tensor:
    """Draw trainable logarithms of standard deviations, `N(-5, 0.05)`, `(trials, *shape)`."""
    return (0.05 * streams.normal(*shape) - 5).requires_grad_()

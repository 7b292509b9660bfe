"""How Gaussian weights start: means near zero, standard deviations near `exp(-5)`, so that means are learnt first."""

from torch import Tensor

from .streams import Streams


def draw_mean(streams: Streams, *shape: int) -> Tensor:
    """Means `N(0, 0.05)`, `(trials, *shape)`, to be trained."""
    return (0.05 * streams.normal(*shape)).requires_grad_()


def draw_rho(streams: Streams, *shape: int) -> Tensor:
    """Logarithms of standard deviations, `N(-5, 0.05)`, `(trials, *shape)`, to be trained."""
    return (0.05 * streams.normal(*shape) - 5).requires_grad_()

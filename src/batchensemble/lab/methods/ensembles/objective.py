"""The loss that the methods minimise."""

import torch.nn.functional as F
from torch import Tensor


def classified(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """The mean cross-entropy, which is the `loss`, and the accuracy of logits `(N, classes)`.

    Examples:
        >>> import torch
        >>> scores = classified(torch.tensor([[0.0, 9.0], [9.0, 0.0]]), torch.tensor([1, 1]))
        >>> round(scores["loss"].item(), 2), scores["accuracy"].item()
        (4.5, 0.5)
    """
    loss = F.cross_entropy(logits, labels)
    accuracy = (logits.argmax(-1) == labels).float().mean()
    return {"loss": loss, "cross_entropy": loss.detach(), "accuracy": accuracy}

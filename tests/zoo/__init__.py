"""Networks that were not written for this library, tiny and with random weights: what `convert` must handle.

`ZOO` maps a name to a `Case`: how to make the network, inputs for n rows, the options `convert` needs for it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from zoo import sequence, transformers_tiny, vision

Inputs = tuple[tuple[Any, ...], dict[str, Any]]
WORDS = 7
TARGETS = 6


@dataclass(frozen=True)
class Case:
    """A network, its inputs, and what `convert` must be told about it.

    `inputs(n)` gives (args, kwargs) of n rows; `cut` names a module for a late fan-out, where one is tried;
    `answer_dim` is the axis of the rows in the answer, where it is not that of the inputs.
    """

    build: Callable[[], nn.Module]
    inputs: Callable[[int], Inputs]
    options: dict[str, Any] = field(default_factory=dict)
    cut: str | None = None
    answer_dim: int | None = None

    def make(self) -> nn.Module:
        """The network, always with the same weights; dropout is off in every case."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self.build()

    @property
    def batch_dim(self) -> int:
        """The axis of the rows in the answer."""
        return self.options.get("batch_dim", 0) if self.answer_dim is None else self.answer_dim


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def floats(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=generator(seed))


def tokens(n: int, length: int = WORDS, seed: int = 2) -> Tensor:
    """Words of a vocabulary of 20, none of them special."""
    return torch.randint(3, 20, (n, length), generator=generator(seed))


def lengths(n: int) -> Tensor:
    """How many words of each row are real: at least two, not sorted, not all the same."""
    return 2 + torch.arange(n) * 3 % (WORDS - 1)


def padded(n: int) -> Tensor:
    """1 for a word, 0 for padding."""
    return (torch.arange(WORDS) < lengths(n)[:, None]).long()


def images(size: int) -> Callable[[int], Inputs]:
    return lambda n: ((floats(n, 3, size, size),), {})


def text(n: int) -> Inputs:
    return (), {"input_ids": tokens(n), "attention_mask": padded(n)}


def translation(n: int) -> Inputs:
    return (), {
        "input_ids": tokens(n),
        "attention_mask": padded(n),
        "decoder_input_ids": tokens(n, TARGETS, seed=3),
    }


def speech(n: int) -> Inputs:
    return (), {"input_features": floats(n, 4, 12), "decoder_input_ids": tokens(n, TARGETS, seed=3)}


def sequence_pair(batch_first: bool) -> Callable[[int], Inputs]:
    def inputs(n: int) -> Inputs:
        source, target = floats(n, WORDS, 8), floats(n, TARGETS, 8, seed=4)
        if not batch_first:
            source, target = source.transpose(0, 1), target.transpose(0, 1)
        return (source, target), {"tgt_mask": sequence.causal_mask(TARGETS)}

    return inputs


MEAN = {"combine": "mean"}
TIME_FIRST = {"combine": "mean", "batch_dim": 1}

ZOO: dict[str, Case] = {
    "resnet18": Case(vision.resnet18, images(24), cut="layer3"),
    "resnet50": Case(vision.resnet50, images(24)),
    "resnet18, norm per member": Case(vision.resnet18, images(24), {"norm": "member"}),
    "unet": Case(vision.UNet, images(8), {"class_dim": 1}),
    "lstm tagger": Case(sequence.Tagger, lambda n: ((tokens(n),), {})),
    "lstm tagger, packed": Case(sequence.Tagger, lambda n: ((tokens(n), lengths(n)), {})),
    "gru, time first": Case(sequence.GRUForecaster, lambda n: ((floats(WORDS, n, 3),), {}), TIME_FIRST),
    "lstm classifier, time first": Case(
        sequence.LSTMClassifier,
        lambda n: ((tokens(n).T,), {}),
        {"batch_dim": 1, "norm": "member"},
        cut="norm",
        answer_dim=0,
    ),
    "encoder": Case(lambda: sequence.encoder(batch_first=True), lambda n: ((floats(n, WORDS, 8),), {}), MEAN),
    "encoder, padded": Case(
        lambda: sequence.encoder(batch_first=True, nested=False),  # nested tensors answer 0 where there is padding
        lambda n: ((floats(n, WORDS, 8),), {"src_key_padding_mask": padded(n) == 0}),
        MEAN,
    ),
    "encoder, time first": Case(
        lambda: sequence.encoder(batch_first=False, nested=False),
        lambda n: (
            (floats(WORDS, n, 8),),
            {"mask": sequence.causal_mask(WORDS), "src_key_padding_mask": padded(n) == 0},
        ),
        TIME_FIRST | {"shared_inputs": ("mask", "src_key_padding_mask")},
    ),
    "encoder-decoder": Case(
        lambda: sequence.encoder_decoder(batch_first=True),
        sequence_pair(True),
        MEAN | {"shared_inputs": ("tgt_mask",)},
    ),
    "encoder-decoder, time first": Case(
        lambda: sequence.encoder_decoder(batch_first=False),
        sequence_pair(False),
        TIME_FIRST | {"shared_inputs": ("tgt_mask",)},
    ),
    "bert": Case(transformers_tiny.bert, text, cut="bert.encoder.layer.1"),
    "gpt2": Case(transformers_tiny.gpt2, text, cut="transformer.h.1"),
    "llama": Case(transformers_tiny.llama, text, cut="model.layers.1"),
    "vit": Case(transformers_tiny.vit, lambda n: ((), {"pixel_values": floats(n, 3, 12, 12)}), cut="vit.layers.1"),
    "marian": Case(transformers_tiny.marian, translation, cut="model.decoder.layers.1"),
    "t5": Case(transformers_tiny.t5, translation, cut="decoder.block.1"),
    "whisper": Case(transformers_tiny.whisper, speech),
}

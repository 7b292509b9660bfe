"""The original Transformer, as Marian from Transformers: with the original's post-norm layers and ReLUs."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

from batchensemble.extras import require

if TYPE_CHECKING:
    from transformers import MarianMTModel

PAD, END = 0, 1


@dataclass(frozen=True)
class Sizes:
    """The sizes of a Transformer.

    Args:
        layers: layers in the encoder, and as many in the decoder.
        width: width of the embeddings and between layers.
        inner: width of the feed-forward layers.
        heads: heads of every attention.
    """

    layers: int = 6
    width: int = 512
    inner: int = 2048
    heads: int = 8


SIZES: dict[str, Sizes] = {
    "base": Sizes(),
    "big": Sizes(width=1024, inner=4096, heads=16),
    "small": Sizes(layers=4, width=256, inner=1024, heads=4),
    "toy": Sizes(layers=1, width=64, inner=128, heads=4),
}
"""The paper's base and big; one for small corpora, and one that trains in seconds on a CPU."""

SELF_ATTENTION = ("*self_attn.*_proj",)
CROSS_ATTENTION = ("*encoder_attn.*_proj",)
"""Patterns for `convert`: queries, keys, values and outputs."""


def transformer(
    vocabulary: int,
    size: str = "base",
    *,
    dropout: float = 0.1,
    inner_dropout: float = 0.1,
    longest: int = 1024,
    generator: torch.Generator | None = None,
) -> "MarianMTModel":
    """Build an untrained Transformer for translation; both embeddings and the classifier share one matrix.

    Args:
        vocabulary: number of sub-words of both languages; 0 is padding and the decoder's start, 1 ends a sentence.
        size: `base`, `big`, `small` or `toy`.
        dropout: dropout of embeddings and of the sublayers' outputs.
        inner_dropout: dropout of attention weights and of rectified units.
        longest: most tokens in a sentence.
        generator: source of the initial weights; `None` follows `torch.manual_seed`.

    Examples:
        >>> net = transformer(100, "toy")
        >>> words = torch.tensor([[5, 6, 7, 1]])
        >>> net(input_ids=words, decoder_input_ids=words).logits.shape
        torch.Size([1, 4, 100])
    """
    require("transformer", "text", "transformers")
    from transformers import MarianConfig, MarianMTModel

    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}; got {size!r}")
    settings = _settings(SIZES[size], vocabulary, dropout, inner_dropout, longest)
    with torch.random.fork_rng(devices=[]):
        net = MarianMTModel(MarianConfig(**settings))
    if not next(net.parameters()).is_meta:
        _initialise_(net, generator)
    return net


def _settings(sizes: Sizes, vocabulary: int, dropout: float, inner_dropout: float, longest: int) -> dict[str, Any]:
    both = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in {"layers": sizes.layers, "ffn_dim": sizes.inner, "attention_heads": sizes.heads}.items()
    }
    return both | {
        "vocab_size": vocabulary,
        "d_model": sizes.width,
        "activation_function": "relu",
        "scale_embedding": True,
        "dropout": dropout,
        "attention_dropout": inner_dropout,
        "activation_dropout": inner_dropout,
        "max_position_embeddings": longest,
        "pad_token_id": PAD,
        "decoder_start_token_id": PAD,
        "eos_token_id": END,
        "bos_token_id": None,
        "forced_eos_token_id": None,
    }


@torch.no_grad()
def _initialise_(net: nn.Module, generator: torch.Generator | None) -> None:
    """Initialise kernels after Glorot, biases to zero, and embeddings to unit variance where they are used."""
    embedding = cast(nn.Embedding, net.get_submodule("model.shared"))
    nn.init.normal_(embedding.weight, std=1 / math.sqrt(embedding.embedding_dim), generator=generator)
    embedding.weight[PAD].zero_()
    for name, module in net.named_modules():
        if isinstance(module, nn.Linear) and name != "lm_head":
            nn.init.xavier_uniform_(module.weight, generator=generator)
            nn.init.zeros_(module.bias)


@contextmanager
def dropping(net: nn.Module, rate: float) -> Iterator[None]:
    """Put a network into training mode with another dropout rate everywhere, for MC-dropout; restore both on exit.

    Examples:
        >>> net, words = transformer(100, "toy").eval(), torch.tensor([[5, 6, 7, 1]])
        >>> with dropping(net, 0.3):
        ...     one, other = (net(input_ids=words, decoder_input_ids=words).logits for _ in range(2))
        >>> torch.equal(one, other), net.training
        (False, False)
    """
    mode = net.training
    rates = {
        (module, name): getattr(module, name)
        for module in net.modules()
        for name in ("dropout", "activation_dropout")
        if isinstance(getattr(module, name, None), float)
    }
    for module, name in rates:
        setattr(module, name, float(rate))
    net.train()
    try:
        yield
    finally:
        for (module, name), before in rates.items():
            setattr(module, name, before)
        net.train(mode)

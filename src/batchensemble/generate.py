"""Transformers' own `generate` for an ensemble: all members decode in step, or every row has its own member.

`generate` runs on a shallow copy of the network, of a subclass of its class, whose `forward` calls the ensemble. Its
cache holds every member's rows, member-major, `(members * N * beams, ...)`; when a beam moves, the rows of all members
move with it.
"""

import inspect
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from batchensemble.ensemble import Ensemble, check_ensemble
from batchensemble.extras import require
from batchensemble.nn.copies import shallow_copy_as
from batchensemble.nn.mode import evaluating
from batchensemble.nn.routing.ids import checked_member, checked_owner
from batchensemble.nn.routing.route import Route, current, travel
from batchensemble.nn.routing.rows import owner_of
from batchensemble.nn.speed.folded import folded_once


def generate(model: Ensemble, *args: Any, member: int | Tensor | None = None, **kwargs: Any) -> Any:
    """Generate from an ensemble of language models: greedily, by sampling or by beam search, with a key-value cache.

    At every step each member sees the same tokens so far, and the next one is chosen by the log of the members' mean
    probability, `log mean_i p_i(y_t | y_<t, x)` (or by whatever `combine` says instead). So scores are
    log-probabilities where a plain network's would be logits, and what divides scores by their sign, such as
    `repetition_penalty`, acts otherwise than there. Runs without gradients, in evaluation mode.

    Args:
        model: an ensemble of one of Transformers' networks that generate, decoder-only or encoder-decoder.
        *args: as in Transformers' `generate`.
        member: one member alone, or ids `(N,)`: a member for each row.
        **kwargs: as in Transformers' `generate`: inputs, `num_beams`, `do_sample`, `max_new_tokens`, ...

    Returns:
        What Transformers' `generate` returns. Hidden states and attentions, if requested, have a member axis.

    Raises:
        TypeError: the network does not generate.
        IndexError: there is no such member.
        ModuleNotFoundError: the extra `text` is not installed.

    Examples:
        >>> import batchensemble as be
        >>> from transformers import GPT2Config, GPT2LMHeadModel
        >>> config = GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, eos_token_id=0, pad_token_id=0)
        >>> model = be.convert(GPT2LMHeadModel(config), members=4)
        >>> prompt = torch.tensor([[5, 6, 7], [8, 9, 10]])
        >>> be.generate(model, prompt, num_beams=4, min_new_tokens=5, max_new_tokens=5).shape
        torch.Size([2, 8])
    """
    check_ensemble(model)
    owner = _owner(model, member, args, kwargs)
    decoder = _decoder(model, owner)
    with evaluating(model), folded_once(model.net) if owner is None else nullcontext():
        return decoder.generate(*args, **kwargs)


def _owner(model: Ensemble, member: int | Tensor | None, args: Any, kwargs: Any) -> int | Tensor | None:
    """The members that the user chose for the rows, checked; `None` if all members answer together."""
    if member is None:
        if model.settings.combine is None:
            raise ValueError("combine=None: these members have no common answer; name one with member=")
        return None
    if not isinstance(member, Tensor):
        return checked_member(member, len(model))
    first = model.edge.first(args, kwargs)
    return checked_owner(member, first.shape[model.edge.axis], len(model), first.device)


def _decoder(model: Ensemble, owner: int | Tensor | None) -> Any:
    """The network as one whose steps call the ensemble."""
    require("generate", "text", "transformers")
    from transformers import GenerationMixin

    if not isinstance(model.net, GenerationMixin):
        raise TypeError(f"{type(model.net).__name__} does not generate: expected one of Transformers' networks that do")
    if model.settings.batch_dim != 0:
        raise ValueError(f"generate needs the rows on axis 0, got batch_dim={model.settings.batch_dim}")
    kind: Any = type(model.net)
    forward = _decoder_forward(model, owner)
    return shallow_copy_as(_decoder_class(kind), model.net, ensemble=(model,), owner=owner, forward=forward)


@cache
def _decoder_class(kind: type[nn.Module]) -> type[nn.Module]:
    """A subclass of a network's class that decodes for an ensemble; of the same name, since Transformers reads it."""
    return type(kind.__name__, (_Decoder, kind), {"__module__": kind.__module__})


def _decoder_forward(model: Ensemble, owner: int | Tensor | None) -> Any:
    """The decoder's forward: the ensemble's own, in the network's signature, which `generate` reads."""

    def forward(*args: Any, **inputs: Any) -> Any:
        rows = model.edge.rows(args, inputs)
        return model(*args, **inputs, member=owner_of(rows, owner))  # beams are neighbours

    forward.__signature__ = inspect.signature(model.net.forward)  # type: ignore[attr-defined]
    return forward


class _Decoder:
    """What a decoder does differently from its network. `ensemble` is in a tuple, so that it is not a submodule."""

    ensemble: tuple[Ensemble]
    owner: int | Tensor | None

    def get_encoder(self, *args: Any, **kwargs: Any) -> Any:
        """The encoder, run for all members (its output stays folded), or for each row's own."""
        encoder = super().get_encoder(*args, **kwargs)  # type: ignore[misc]
        return _Encoder(encoder, self.ensemble[0], self.owner)

    def _reorder_cache(self, cache: Any, beams: Tensor) -> Any:
        """Move the beams alike in every member's rows."""
        model = self.ensemble[0]
        copies = len(model) if self.owner is None else 1
        if model.settings.fan_out is None:
            cache.reorder_cache(_folded(beams, copies))
        else:  # layers before the fan-out hold one copy of the rows
            for layer in _layers(cache):
                layer.reorder_cache(_folded(beams, len(layer.keys) // len(beams)))
        return cache

    def _valid_auto_compile_criteria(self, *args: Any, **kwargs: Any) -> bool:
        """Never: a decoder lives for one call, and its compiled step would die with it."""
        return False


def _folded(beams: Tensor, copies: int) -> Tensor:
    """Turn places `(rows,)` in one copy into places `(copies * rows,)` in all of them.

    Examples:
        >>> _folded(torch.tensor([1, 0]), copies=2)
        tensor([1, 0, 3, 2])
    """
    starts = torch.arange(copies, device=beams.device) * len(beams)
    return (starts[:, None] + beams).flatten()


def _layers(cache: Any) -> Iterator[Any]:
    for part in ("self_attention_cache", "cross_attention_cache"):
        yield from getattr(getattr(cache, part, None), "layers", ())
    yield from getattr(cache, "layers", ())


class _Encoder:
    """An encoder that is called by itself, apart from its network."""

    def __init__(self, encoder: nn.Module, model: Ensemble, owner: int | Tensor | None) -> None:
        self._encoder, self._model, self._owner = encoder, model, owner
        self.forward = encoder.forward  # `generate` reads its signature

    def __call__(self, **inputs: Any) -> Any:
        """`(N, ...)` in; `(members * N, ...)` out, or `(N, ...)` if rows name members or the fan-out comes later."""
        model, edge = self._model, self._model.edge
        rows = edge.rows((), inputs)
        late = model.settings.fan_out is not None
        together = self._owner is None and not late
        copies = len(model) if together else 1
        inputs = edge.repeat(edge.given((), inputs), copies).kwargs
        route = Route(len(model), rows * copies, self._owner, 0, model.settings.fan_out, repeated=copies)
        return travel(route, self._run, inputs)

    def _run(self, inputs: dict[str, Any]) -> Any:
        output = self._encoder(**inputs)
        route = current()
        if self._model.settings.fan_out is not None and route is not None and route.fan_out is None:
            raise ValueError(
                f"fan_out={self._model.settings.fan_out!r} is in the encoder: generate needs it in the decoder"
            )
        return output

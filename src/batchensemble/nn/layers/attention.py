"""Multi-head attention for members: q, k, v and the output each have their own r and s."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from batchensemble.nn.init import Fast
from batchensemble.nn.layers.converted import Pick
from batchensemble.nn.layers.linear import Linear, linear_of
from batchensemble.nn.layers.member import FastModule, put_
from batchensemble.nn.routing.layer_input import copies_of_the_batch

_PROJECTIONS = ("q_proj", "k_proj", "v_proj")


class MultiheadAttention(FastModule, nn.MultiheadAttention):
    """`torch.nn.MultiheadAttention` for members, in torch's argument order.

    Its four projections are `batchensemble.nn.Linear`; the attention between them is torch's own.

    Examples:
        >>> attention = MultiheadAttention(8, 2, members=3, batch_first=True)
        >>> x = torch.randn(6, 5, 8)
        >>> attention(x, x, x)[0].shape
        torch.Size([6, 5, 8])
    """

    q_proj: Linear
    k_proj: Linear
    v_proj: Linear

    def add_fast_weights_(self, fast: Fast) -> None:
        """Split the packed weights into projections that have members."""
        for name, linear in zip(_PROJECTIONS, self._plain_projections(), strict=True):
            self.add_module(name, Linear.ensembled(linear, fast))
        self.add_module("out_proj", Linear.ensembled(self.out_proj, fast.after_first()))
        for name in ("in_proj_weight", "in_proj_bias", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            self._parameters[name] = None
        for child in (self.q_proj, self.k_proj, self.v_proj, self.out_proj):
            child.rows_at = 0 if self.batch_first else 1

    def _plain_projections(self) -> list[nn.Linear]:
        if self.in_proj_weight is not None:
            weights: Any = self.in_proj_weight.chunk(3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases: Any = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        return [linear_of(weight, bias) for weight, bias in zip(weights, biases, strict=True)]

    def _reset_parameters(self) -> None:
        """Start as a new layer does: torch draws the packed weight as one layer with three times the outputs."""
        if "q_proj" not in self._modules:  # torch's constructor calls this, too
            super()._reset_parameters()
            return
        parts = (self.q_proj, self.k_proj, self.v_proj, self.out_proj)
        for part in parts:
            part.reset_parameters()
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        for part in parts[:3]:
            nn.init.xavier_uniform_(part.weight, math.sqrt(0.5) if self._qkv_same_embed_dim else 1.0)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                nn.init.xavier_normal_(extra)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """As in torch, for batches: `(rows, length, features)` with `batch_first`, else `(length, rows, features)`."""
        if query.ndim != 3:
            raise ValueError(f"members need a batch: query must have 3 axes, got shape {tuple(query.shape)}")
        if is_causal and attn_mask is None:
            raise ValueError("is_causal says what attn_mask is; give attn_mask too")
        self._check_rows(query, key, value)
        mask = self._mask(query, key, attn_mask, key_padding_mask)
        q, k, v, mask = self._heads(query, key, value, mask)
        if need_weights:
            weights = _weights(q, k, mask)
            y = F.dropout(weights, self.dropout, self.training) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, mask, self.dropout if self.training else 0.0)
        y = y.transpose(1, 2).flatten(2)  # (rows, length, features)
        out = self.out_proj(y if self.batch_first else y.transpose(0, 1))
        if not need_weights:
            return out, None
        return out, (weights.mean(1) if average_attn_weights else weights)

    def _heads(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Projected q, k, v as `(rows, heads, length, head_dim)`, with the extra keys that torch can add."""
        q, k, v = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        if not self.batch_first:
            q, k, v = (t.transpose(0, 1) for t in (q, k, v))
        extra = 0
        if self.bias_k is not None and self.bias_v is not None:
            k, v = (
                torch.cat([t, b.to(t.dtype).expand(t.shape[0], 1, -1)], 1)
                for t, b in ((k, self.bias_k), (v, self.bias_v))
            )
            extra += 1
        if self.add_zero_attn:
            k, v = F.pad(k, (0, 0, 0, 1)), F.pad(v, (0, 0, 0, 1))
            extra += 1
        if mask is not None and extra:
            mask = F.pad(mask, (0, extra))
        q, k, v = (t.unflatten(2, (self.num_heads, self.head_dim)).transpose(1, 2) for t in (q, k, v))
        return q, k, v, mask

    def _check_rows(self, *inputs: Tensor) -> None:
        """Refuse what torch refuses: a single row of keys or values would broadcast unnoticed."""
        shapes, at = [tuple(t.shape) for t in inputs], 0 if self.batch_first else 1
        if any(len(shape) != 3 or shape[at] != shapes[0][at] for shape in shapes):
            raise ValueError(f"query, key and value must have as many rows on axis {at}, got shapes {shapes}")

    def _mask(self, query: Tensor, key: Tensor, attn_mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """Join both masks into one that is added to the scores, `(rows or 1, heads or 1, length, keys)`."""
        rows, at = query.shape[0 if self.batch_first else 1], (1 if self.batch_first else 0)
        mask: Tensor | None = None
        if attn_mask is not None:
            _check_mask("attn_mask", attn_mask, (2, 3), query.shape[at], key.shape[at])
            mask = _additive(attn_mask, query.dtype)
            mask = mask[None, None] if mask.ndim == 2 else self._per_head(mask, rows)
        if padding is not None:
            _check_mask("key_padding_mask", padding, (2,), key.shape[at])
            padding = self._for_every_copy("key_padding_mask", _additive(padding, query.dtype), rows)[:, None, None]
            mask = padding if mask is None else mask + padding
        return mask

    def _per_head(self, mask: Tensor, rows: int) -> Tensor:
        """A mask `(rows * heads, length, keys)`, as `(rows, heads, length, keys)`."""
        mask = self._for_every_copy("attn_mask", mask, rows * self.num_heads)
        per_head: Tensor = mask.unflatten(0, (rows, self.num_heads))
        return per_head

    def _for_every_copy(self, name: str, mask: Tensor, size: int) -> Tensor:
        """Repeat a mask given for the batch for all of its copies: its rows may be on another axis than the batch's."""
        found = mask.shape[0]  # not len, which would fix the batch size in an export
        if found == size:
            return mask
        copies = copies_of_the_batch(self.q_proj)
        if found * copies != size:
            raise ValueError(f"{name} has {found} entries on its first axis, expected {size}")
        return torch.cat([mask] * copies)

    @torch.no_grad()
    def plain(self, pick: Pick) -> nn.Module:
        """The plain attention of one member, packed where the original was."""
        module = self.plain_twin()
        parts: list[Any] = [module._modules.pop(name) for name in _PROJECTIONS]
        linears: list[Any] = [part.plain(pick) for part in parts]
        if self._qkv_same_embed_dim:
            put_(module, "in_proj_weight", torch.cat([linear.weight for linear in linears]))
            module.in_proj_weight.requires_grad_(linears[0].weight.requires_grad)
        else:
            for name, linear in zip(_PROJECTIONS, linears, strict=True):
                module._parameters[f"{name}_weight"] = linear.weight
        if linears[0].bias is not None:
            put_(module, "in_proj_bias", torch.cat([linear.bias for linear in linears]))
            module.in_proj_bias.requires_grad_(linears[0].bias.requires_grad)
        module._modules["out_proj"] = self.out_proj.plain(pick)  # type: ignore[operator]
        return module


def _weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-1, -2)
    return (scores if mask is None else scores + mask).softmax(-1)


def _check_mask(name: str, mask: Tensor, axes: tuple[int, ...], *sizes: int) -> None:
    """Refuse what torch refuses: an axis of size one would broadcast unnoticed, and integers would be added."""
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise ValueError(
            f"{name} must be boolean (True: ignore this key) or floating (added to scores), got {mask.dtype}"
        )
    if mask.ndim not in axes or tuple(mask.shape[-len(sizes) :]) != sizes:
        raise ValueError(f"{name} has shape {tuple(mask.shape)}, and its last axes should be {sizes}")


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a boolean mask (True: ignore this key) into one that is added to the scores."""
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)

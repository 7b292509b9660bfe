"""Recurrent networks and torch's own Transformers."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Tagger(nn.Module):
    """A tag for every word; with `lengths` the padding never enters the LSTM."""

    def __init__(self, words: int = 20, width: int = 6, tags: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * width, tags)

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        words = self.embed(tokens)
        if lengths is None:
            return self.head(self.lstm(words)[0])
        packed = pack_padded_sequence(words, lengths.cpu(), batch_first=True, enforce_sorted=False)
        features, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=tokens.shape[1])
        return self.head(features)


class GRUForecaster(nn.Module):
    """Time first, a single layer; answers with a tuple: the forecast and the last state."""

    def __init__(self, width: int = 5) -> None:
        super().__init__()
        self.gru = nn.GRU(3, width)
        self.head = nn.Linear(width, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features, state = self.gru(x)
        return self.head(features), state


class LSTMClassifier(nn.Module):
    """torch's defaults, time first: a class for every row, from the last state."""

    def __init__(self, words: int = 20, width: int = 5, classes: int = 6) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width)
        self.hidden = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        _, (state, _) = self.lstm(self.embed(tokens))
        return self.head(self.norm(self.hidden(state[-1])))


def encoder(batch_first: bool, nested: bool = True) -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=batch_first)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested)


def encoder_decoder(batch_first: bool) -> nn.Module:
    inside = None if batch_first else encoder(batch_first, nested=False)  # torch warns about its own default
    return nn.Transformer(8, 2, 2, 2, 16, dropout=0.0, batch_first=batch_first, custom_encoder=inside)


def causal_mask(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).triu(1)

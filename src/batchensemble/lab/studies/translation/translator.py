"""A trained model as its user sees it: sentences in, sentences out, and how far its members agree."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import batchensemble as be
from batchensemble.disk import written_whole
from batchensemble.extras import require
from batchensemble.lab.data.text import PAD, Vocabulary
from batchensemble.nn.mode import evaluating

ENSEMBLE, NETWORK = "ensemble.safetensors", "network.safetensors"
EXTRA = "text"
NEEDED = ("sacrebleu", "tokenizers", "transformers")


def check_installed() -> None:
    """Check that everything a translation needs is installed, before any work begins.

    Raises:
        ModuleNotFoundError: a package of the extra `text` is missing.
    """
    require("translation", EXTRA, *NEEDED)


class TooLong(ValueError):
    """A sentence has more tokens than the model takes; `place` is its index among the sentences."""

    def __init__(self, place: int, words: str) -> None:
        super().__init__(f"sentence {place + 1} {words}")
        self.place, self.words = place, words


@dataclass(frozen=True)
class Agreement:
    """How far members agree on a translation, averaged over its tokens.

    Attributes:
        disagreement: share of pairs of members that would choose different tokens.
        mutual_information: mutual information of the next token and the member that predicts it, in nats.
    """

    disagreement: float
    mutual_information: float


@dataclass(frozen=True, eq=False)
class Translator:
    """A network or an ensemble that translates.

    Args:
        model: Marian, or an ensemble of it.
        vocabulary: shared by both languages.
        beams: width of the beam search.
        alpha: exponent of the length penalty: a sentence's score is its log-probability / length ** alpha.
        extra: tokens by which a translation may be longer than the longest sentence of its batch.
        tokens: most source tokens in a batch, including padding.
        autocast: sets the precision to compute in.
    """

    model: nn.Module
    vocabulary: Vocabulary
    beams: int = 4
    alpha: float = 0.6
    extra: int = 50
    tokens: int = 16_384
    autocast: Callable[[], AbstractContextManager[Any]] = nullcontext

    def __post_init__(self) -> None:
        if self.beams < 1:
            raise ValueError(f"beams must be at least 1; got {self.beams}")
        if not math.isfinite(self.alpha):
            raise ValueError(f"alpha must be finite; got {self.alpha}")

    @property
    def net(self) -> Any:
        """The network, its layers converted or not."""
        return self.model.net if isinstance(self.model, be.Ensemble) else self.model

    def translate(self, sentences: Sequence[str]) -> list[str]:
        """Translate every sentence; an empty one stays empty.

        Raises:
            TooLong: a sentence is longer than the model takes.
        """
        rows = self._encoded(sentences)
        found = [""] * len(sentences)
        with evaluating(self.model):
            for places in self._together(rows):
                said = self._search(_padded([rows[place] for place in places], self._device))
                for place, text in zip(places, self.vocabulary.decode(said.tolist()), strict=True):
                    found[place] = text
        return found

    def agreement(self, sentences: Sequence[str], translations: Sequence[str]) -> list[Agreement]:
        """How far the members agree on each translation, token by token as it is given.

        Raises:
            ValueError: the model has no members, or a translation is longer than it takes.
        """
        if not isinstance(self.model, be.Ensemble):
            raise ValueError("this model is one network: it has no members to agree or not")
        rows, said = self._encoded(sentences), self._encoded(translations)
        return [self._agreement(self.model, one, other) for one, other in zip(rows, said, strict=True)]

    def save(self, folder: Path) -> None:
        """Save everything needed to translate again."""
        from safetensors.torch import save_model

        folder.mkdir(parents=True, exist_ok=True)
        self.vocabulary.save(folder / "vocabulary.json")
        self.net.config.to_json_file(folder / "config.json")
        if isinstance(self.model, be.Ensemble):
            self.model.save(folder / ENSEMBLE)
        else:
            with written_whole(folder / NETWORK) as beside:
                save_model(self.model, str(beside))

    @classmethod
    def load(cls, folder: Path, device: torch.device | str = "cpu", **options: Any) -> "Translator":
        """Load what `save` wrote.

        Raises:
            FileNotFoundError: the folder holds no translator.
            ValueError: one of its files is damaged.
        """
        missing = [name for name in ("config.json", "vocabulary.json") if not (folder / name).is_file()]
        if missing:
            raise FileNotFoundError(f"{folder} holds no translator: {' and '.join(missing)} not found")
        model = _model(folder).to(device).eval()
        return cls(model, Vocabulary.load(folder / "vocabulary.json"), **options)

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _encoded(self, sentences: Sequence[str]) -> list[list[int]]:
        longest = self.net.config.max_position_embeddings
        rows = self.vocabulary.encode([" ".join(sentence.split()) for sentence in sentences])
        for place, row in enumerate(rows):
            if len(row) > longest:
                raise TooLong(place, f"has {len(row)} tokens; the model takes {longest}")
        return rows

    def _together(self, rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
        """The indices of non-empty sentences, grouped by similar length, longest first."""
        places = sorted((place for place, row in enumerate(rows) if len(row) > 1), key=lambda place: -len(rows[place]))
        while places:
            count = max(1, self.tokens // len(rows[places[0]]))
            yield places[:count]
            places = places[count:]

    def _search(self, source: Tensor) -> Tensor:
        """The best translation of every row, `(N, T)`."""
        longest = self.net.config.max_position_embeddings
        options = {
            "attention_mask": source.ne(PAD),
            "num_beams": self.beams,
            **({"length_penalty": self.alpha} if self.beams > 1 else {}),
            "max_new_tokens": min(source.shape[1] + self.extra, longest) - 1,
            "suppress_tokens": [PAD],
        }
        with torch.no_grad(), self.autocast():
            if isinstance(self.model, be.Ensemble):
                found: Tensor = be.generate(self.model, source, **options)
            else:
                found = self.net.generate(source, **options)
        return found

    def _agreement(self, model: be.Ensemble, source: Sequence[int], said: Sequence[int]) -> Agreement:
        source_, said_ = (torch.tensor([row], device=self._device) for row in (source, said))
        before = torch.cat([torch.full_like(said_[:, :1], PAD), said_[:, :-1]], 1)
        with self.autocast():
            words = model.predict(input_ids=source_, decoder_input_ids=before, use_cache=False)
        return Agreement(float(words.disagreement.mean()), float(words.mutual_information.mean()))


def _model(folder: Path) -> nn.Module:
    """Load the network or ensemble in a folder."""
    from safetensors import SafetensorError
    from safetensors.torch import load_model
    from transformers import MarianConfig, MarianMTModel

    try:
        net: nn.Module = MarianMTModel(MarianConfig.from_json_file(folder / "config.json"))
    except ValueError as error:
        raise ValueError(f"{folder / 'config.json'} is damaged: {error}") from error
    if (folder / ENSEMBLE).exists():
        return be.load(folder / ENSEMBLE, net)
    try:
        load_model(net, folder / NETWORK)
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(f"{folder / NETWORK} is damaged or of another network: {error}") from error
    return net


def _padded(rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows], device=device)


def bleu(translations: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """Corpus BLEU by sacrebleu, 0 to 100, and the signature that says how it was computed.

    Examples:
        >>> score, signature = bleu(["the cat sat on the mat"], ["the cat sat on the mat"])
        >>> round(score), signature.split("|version")[0]
        (100, 'nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp')
    """
    from sacrebleu.metrics import BLEU

    metric = BLEU()
    score = metric.corpus_score(list(translations), [list(references)])
    return float(score.score), str(metric.get_signature())

"""`batchensemble translate`: exactly one line out for every line in."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import batchensemble as be
from batchensemble.lab.studies.translation.translator import TooLong, Translator, check_installed
from batchensemble.lab.training.devices import device_kind

AT_A_TIME = 256  # lines read before the first of them is written


def find_translator(model: str, work: Path) -> Path:
    """A translator's folder, given its path or the name of its weights in a record.

    Raises:
        FileNotFoundError: there is none.
    """
    for folder in (Path(model), Path(model) / "translator", work / "weights" / model / "translator"):
        if (folder / "config.json").is_file():
            return folder
    raise FileNotFoundError(
        f"{model!r} is not a translator's folder, and {work / 'weights'} has no translator of that name"
    )


def translated_lines(
    folder: Path, lines: Iterable[bytes], *, beams: int, alpha: float, uncertainty: bool, device: str
) -> Iterator[str]:
    """A translation for every line; with `uncertainty`, a tab and the members' disagreement follow it.

    Raises:
        ValueError: a line is not UTF-8 or is longer than the model takes, or a single network is asked for uncertainty.
    """
    check_installed()
    translator = Translator.load(folder, device_kind(device), beams=beams, alpha=alpha)
    if uncertainty and not isinstance(translator.model, be.Ensemble):
        raise ValueError(f"{folder} holds one network: it has no members to agree or not")
    for first, sentences in _chunks(lines):
        try:
            said = translator.translate(sentences)
            yield from _with_disagreement(translator, sentences, said) if uncertainty else said
        except TooLong as error:
            raise ValueError(f"line {first + error.place} {error.words}") from error


def _with_disagreement(translator: Translator, sentences: list[str], said: list[str]) -> Iterator[str]:
    for text, agreement in zip(said, translator.agreement(sentences, said), strict=True):
        yield f"{text}\t{agreement.disagreement:.4f}"


def _chunks(lines: Iterable[bytes]) -> Iterator[tuple[int, list[str]]]:
    """Chunks of lines, each with the number of its first line."""
    chunk: list[str] = []
    number = 0
    for number, line in enumerate(lines, 1):
        try:
            chunk.append(line.decode().strip())
        except UnicodeDecodeError as error:
            raise ValueError(f"line {number} is not UTF-8: {error}") from None
        if len(chunk) == AT_A_TIME:
            yield number + 1 - len(chunk), chunk
            chunk = []
    if chunk:
        yield number + 1 - len(chunk), chunk

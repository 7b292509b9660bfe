"""A bar where rich is installed, lines where it is not, silence by default."""

import builtins

import pytest

from batchensemble.lifelong import Epoch
from batchensemble.lifelong.progress import shown

EPOCH = Epoch(("birds",), 1, 2, 0.5, 0.75, 0.1)


def test_without_rich_epochs_are_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    importing = builtins.__import__

    def no_rich(name: str, *rest: object) -> object:
        if name.startswith("rich"):
            raise ImportError(name)
        return importing(name, *rest)

    monkeypatch.setattr(builtins, "__import__", no_rich)
    with shown(True) as tell:
        tell(EPOCH)
    assert capsys.readouterr().out == "birds: epoch 1/2, loss 0.500, accuracy 75.0%\n"


def test_with_rich_there_is_a_bar_that_goes_away() -> None:
    from rich.progress import Progress

    seen: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Progress, "update", lambda self, task, **how: seen.append(how["description"]))
        with shown(True) as tell:
            tell(EPOCH)
    assert seen == ["birds: epoch 1/2, loss 0.500, accuracy 75.0%"]


def test_silence_and_functions_of_ones_own() -> None:
    with shown(False) as tell:
        assert tell is None
    with shown(print) as tell:
        assert tell is print

"""How a metric is named, in which unit it is shown, and which direction is better."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from batchensemble.lab.report.evidence import Summary


@dataclass(frozen=True)
class Quantity:
    """A metric as people read it.

    Args:
        metric: its name in records.
        name: its name in tables and figures.
        unit: unit of the displayed value.
        factor: the displayed value over the recorded one.
        digits: digits after the decimal point; three significant digits by default.
        better: which direction is better.
        least: positive values below it, in the displayed unit, are shown as `< least`.

    Examples:
        >>> quantity("accuracy").text(0.95314, 0.0012)
        '95.31 ± 0.12'
        >>> quantity("training_seconds").text(1532.2), quantity("accuracy").heading
        ('1,532', 'accuracy (%)')
    """

    metric: str
    name: str
    unit: str = ""
    factor: float = 1.0
    digits: int | None = None
    better: Literal["higher", "lower"] | None = None
    least: float = 0.0

    @property
    def heading(self) -> str:
        """Name and unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def scaled(self, value: float) -> float:
        """Convert a recorded value to the displayed unit."""
        return value * self.factor

    def text(self, value: float, spread: float | None = None) -> str:
        """Format a recorded value, and its spread if there is one."""
        if 0 < self.scaled(value) < self.least:
            return f"< {self.least:g}"
        text = f"{self.scaled(value):,.{self._digits(value)}f}"
        return text if spread is None else f"{text} ± {self.scaled(spread):,.{self._digits(value)}f}"

    def summary(self, summary: Summary) -> str:
        """Format a summary; a number that is the same with every seed, such as a count, has no spread."""
        return self.text(summary.mean, summary.spread or None)

    def spread_text(self, summary: Summary) -> str:
        """Format only the spread, with the digits of the mean; empty if there is none."""
        return self.summary(summary).partition(" ± ")[2]

    def _digits(self, value: float) -> int:
        if self.digits is not None:
            return self.digits
        size = abs(self.scaled(value))
        return 0 if size >= 100 or size == 0 else min(6, 2 - math.floor(math.log10(size)))


def sentence(names: Iterable[str]) -> str:
    """Join names into a title.

    Examples:
        >>> sentence(["accuracy", "ECE"])
        'Accuracy, ECE'
    """
    text = ", ".join(names)
    return text[:1].upper() + text[1:]


def _percent(metric: str, name: str, better: Literal["higher", "lower"]) -> Quantity:
    return Quantity(metric, name, "%", 100.0, 2, better)


_KNOWN = (
    _percent("accuracy", "accuracy", "higher"),
    _percent("train_accuracy", "training accuracy", "higher"),
    _percent("member_accuracy", "members' accuracy", "higher"),
    _percent("average_accuracy", "average accuracy", "higher"),
    _percent("forgetting", "forgetting", "lower"),
    _percent("ece", "ECE", "lower"),
    _percent("adaptive_ece", "adaptive ECE", "lower"),
    Quantity("nll", "NLL", digits=3, better="lower"),
    Quantity("scaled_nll", "NLL, temperature scaled", digits=3, better="lower"),
    Quantity("train_loss", "training loss", digits=3, better="lower"),
    Quantity("brier", "Brier score", digits=3, better="lower"),
    Quantity("disagreement", "disagreement", digits=3),
    Quantity("disagreement_over_error", "disagreement / error", digits=2),
    Quantity("base_disagreement", "disagreement with the first member", digits=3),
    Quantity("base_disagreement_over_error", "disagreement with the first member / error", digits=2),
    Quantity("pairwise_kl", "pairwise KL", "nats", digits=3),
    Quantity("pairwise_kl_over_error", "pairwise KL / error", digits=2),
    Quantity("base_kl", "KL to the first member", "nats", digits=3),
    Quantity("base_kl_over_error", "KL to the first member / error", digits=2),
    Quantity("mutual_information", "mutual information", "nats", digits=3),
    _percent("auroc", "AUROC", "higher"),
    _percent("aupr", "AUPR", "higher"),
    _percent("fpr95", "FPR at 95 %", "lower"),
    Quantity("entropy_known", "entropy, known classes", "nats", digits=3),
    Quantity("entropy_unknown", "entropy, unseen classes", "nats", digits=3),
    Quantity("parameters", "parameters", "millions", 1e-6, 3, "lower"),
    Quantity("training_seconds", "training time", "s", better="lower"),
    Quantity("passes", "forward passes", digits=0, better="lower"),
    Quantity("epochs", "epochs", digits=0),
    Quantity("perplexity", "perplexity", digits=2, better="lower"),
    Quantity("test_perplexity", "test perplexity", digits=2, better="lower"),
    Quantity("validation_loss", "validation loss", digits=3, better="lower"),
    Quantity("bleu", "BLEU", digits=2, better="higher"),
    Quantity("bleu_curve", "BLEU", digits=2, better="higher"),
    Quantity("tokens_per_second", "target tokens per second", digits=0, better="higher"),
    Quantity("relative_regret", "regret, Uniform = 100", digits=2, better="lower"),
    Quantity("regret", "regret", better="lower"),
)
QUANTITIES = {known.metric: known for known in _KNOWN}


def quantity(metric: "str | Quantity") -> Quantity:
    """The quantity of a metric; an unknown one is shown under its own name, to three digits.

    Examples:
        >>> quantity("relative_time").heading
        'relative time'
    """
    if isinstance(metric, Quantity):
        return metric
    return QUANTITIES.get(metric) or Quantity(metric, metric.replace("_", " "))

"""Image classification."""

from dataclasses import asdict, replace
from statistics import mean

from batchensemble.lab.experiments.corruption import ACCURACY, ECE, NLL
from batchensemble.lab.records import Record, Scale
from batchensemble.lab.report import Quantity
from batchensemble.lab.report.evidence import Evidence
from batchensemble.lab.report.views import comparison
from drawn.records import body, evidence_of, made

CLEAN = ("accuracy", "member_accuracy", "disagreement", "nll", "ece", "train_accuracy")
KNOWN = Quantity("entropy_known", "entropy, CIFAR-10", digits=3)
UNKNOWN = Quantity("entropy_unknown", "entropy, CIFAR-100", digits=3)


def single() -> str:
    """Single networks on CIFAR-10 at paper scale."""
    records = _singles("cifar-accuracy", data="CIFAR-10")
    clean = [record.metrics for record in records]
    unseen = [record.metrics for record in _singles("cifar-unseen")]
    shift = [row for record in _singles("cifar-corruption") for row in record.metrics["shift"]]
    lines = ["| single ResNet-32x4, CIFAR-10 | here | the paper |", "|---|---|---|"]
    seeds = ", ".join(f"{100 * metrics['accuracy']:.2f}" for metrics in clean)
    lines.append(f"| accuracy, % | {100 * mean(m['accuracy'] for m in clean):.2f} (seeds: {seeds}) | 95.31 |")
    lines.append(f"| ECE, % | {100 * mean(m['ece'] for m in clean):.2f} | 3.27 |")
    lines.append(f"| negative log-likelihood | {mean(m['nll'] for m in clean):.3f} | |")
    lines.append(f"| training accuracy, % | {100 * mean(m['train_accuracy'] for m in clean):.2f} | 100 |")
    lines.append(f"| AUROC against CIFAR-100 by entropy | {mean(m['auroc'] for m in unseen):.3f} | |")
    for severity in (1, 3, 5):
        accuracy = mean(row["accuracy"] for row in shift if row["severity"] == severity)
        lines.append(f"| accuracy under 19 corruptions, severity {severity}, % | {100 * accuracy:.1f} | |")
    where = made(asdict(records[0].provenance))
    return "\n".join([*lines, "", f"Scale `paper`: 250 epochs, {len(clean)} seeds; {where}."])


def _singles(experiment: str, **labels: str) -> list[Record]:
    """Records of single networks at paper scale, by seed."""
    found = evidence_of(experiment, "paper").where(method="Single", **labels).results
    return sorted((result.record for result in found), key=lambda record: record.run.seed)


def cifar_small() -> str:
    """CIFAR-10 in a few epochs of a narrow network."""
    evidence = _measured("cifar-accuracy", "small").where(data="CIFAR-10")
    return body(evidence, comparison("accuracy", "member_accuracy", "train_accuracy", "ece"), facts=True)


def cifar_short() -> str:
    """CIFAR with the paper's networks and a fifth of its epochs."""
    return body(_measured("cifar-accuracy", "short"), comparison(*CLEAN, rows=("data", "method")), facts=True)


def cifar_accuracy() -> str:
    """The same networks' accuracy and calibration, a column for each set of images."""
    return body(_measured("cifar-accuracy", "short"), comparison("accuracy", "ece", columns="data"), facts=True)


def cifar_short_shifted() -> str:
    """The same networks under corruption and on classes they have not seen."""
    under, entropy = comparison(ACCURACY, NLL, ECE), comparison("auroc", KNOWN, UNKNOWN)
    return (
        f"{body(_measured('cifar-corruption', 'short'), under)}\n\n{body(_measured('cifar-unseen', 'short'), entropy)}"
    )


def recipes() -> str:
    """Recipes of BatchEnsemble on CIFAR-100 in six epochs, the best ensemble first."""
    evidence = _measured("recipes", "paper")
    best = sorted(evidence.places, key=lambda place: -place.record.metrics["accuracy"] if place.record else 0)
    view = comparison("accuracy", "member_accuracy", "disagreement", "nll", "ece", "train_loss", rows="recipe")
    return body(replace(evidence, places=tuple(best)), view)


def _measured(experiment: str, scale: Scale) -> Evidence:
    """What there is a record of, without the paper's numbers, which took many more epochs."""
    evidence = evidence_of(experiment, scale)
    return replace(evidence, places=tuple(place for place in evidence.places if place.record), published=())

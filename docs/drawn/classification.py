"""Image classification."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import mean

import torch
from torch import Tensor

from batchensemble import Prediction
from batchensemble.lab.experiments.classifiers import (
    BATCH,
    NAIVE,
    OWN_NORMS_RELEASED,
    REPEATED,
    SINGLE,
    SINGLE_RELEASED,
)
from batchensemble.lab.experiments.corruption import ACCURACY, ECE, NLL
from batchensemble.lab.records import Record, Scale
from batchensemble.lab.report import Quantity
from batchensemble.lab.report.evidence import Evidence
from batchensemble.lab.report.quantity import quantity
from batchensemble.lab.report.views import comparison
from drawn.records import body, evidence_of, lead, markdown, only, recorded

CLEAN = ("accuracy", "member_accuracy", "disagreement", "nll", "scaled_nll", "ece", "train_accuracy")
MADE_OF = ("accuracy", "member_accuracy", "disagreement", "nll", "scaled_nll", "train_accuracy")
KNOWN = Quantity("entropy_known", "entropy, CIFAR-10", "nats", digits=3)
UNKNOWN = Quantity("entropy_unknown", "entropy, CIFAR-100", "nats", digits=3)


GAINS = {
    SINGLE: ("one network", "paper"),
    BATCH: ("4 members, split batch, shared norms", "paper"),
    NAIVE: ("4 independent networks", "paper"),
    SINGLE_RELEASED: ("one network", "released"),
    REPEATED: ("4 members, repeated batch, shared norms", "released"),
    OWN_NORMS_RELEASED: ("4 members, split batch, norm per member", "released"),
}
SCORES = (
    Quantity("accuracy", "accuracy", "%", 100, 1),
    Quantity("ece", "ECE", "%", 100, 1),
    quantity("nll"),
    quantity("scaled_nll"),
)


def gains() -> str:
    """What four members gain over one network on CIFAR-100, and what they take."""
    evidence = _measured("cifar-accuracy", "paper").where(data="CIFAR-100")
    found = {name: [result.record for result in evidence.where(method=name).results] for name in GAINS}
    one = found[SINGLE][0]
    rows = []
    for name, records in ((name, records) for name, records in found.items() if records):
        scores = (_mean(records, score) for score in SCORES)
        seen, size = _shown(records[0]) / _shown(one), records[0].metrics["parameters"] / one.metrics["parameters"]
        rows.append((*GAINS[name], *scores, f"{seen:g} x", f"{size:.2f} x"))
    columns = ("", "schedule", *(score.heading for score in SCORES), "training images seen", "parameters")
    return markdown(columns, rows, labels=2)


def _mean(records: Sequence[Record], score: Quantity) -> str:
    """The mean over seeds; not measured if a record lacks it."""
    found = [record.metrics.get(score.metric) for record in records]
    return "not measured" if None in found else score.text(mean(found))


def _shown(record: Record) -> int:
    """How often a network or a member was shown the training set."""
    method = record.run.settings["recipe"]["method"]
    times = 1 if method.get("rows") == "sub-batches" else method.get("members", 1)
    return int(record.metrics["epochs"] * times)


def cifar_paper() -> str:
    """CIFAR-10 as the paper trains it, its numbers in parentheses."""
    return body(_beside_the_paper("CIFAR-10"), comparison("accuracy", "ece", "nll", "scaled_nll"), epochs=True)


def cifar100_paper() -> str:
    """CIFAR-100 as the paper trains it, as far as that has been done, its numbers in parentheses."""
    return body(_beside_the_paper("CIFAR-100"), comparison(*CLEAN[:-1]), epochs=True)


def cifar10_leads() -> str:
    """How far the recommended recipe is ahead of others on CIFAR-10."""
    return _leads("CIFAR-10")


def cifar100_leads() -> str:
    """How far it is ahead of them on CIFAR-100."""
    return _leads("CIFAR-100")


def _leads(data: str) -> str:
    """How far the recommended recipe is ahead on the same test images, with the standard error over these."""
    evidence = _measured("cifar-accuracy", "paper").where(data=data)
    ours = _by_image(only(evidence, method=OWN_NORMS_RELEASED))
    rows = []
    for name in (SINGLE_RELEASED, REPEATED, NAIVE):
        (correct, likelihood) = ours - _by_image(only(evidence, method=name))
        rows.append((name, lead(100 * correct, 2), lead(likelihood, 3)))
    return markdown(("lead over", "accuracy (points)", "log-likelihood (nats)"), rows)


def _by_image(record: Record) -> Tensor:
    """`(2, images)`: whether the combined answer is right, and the log-probability of the label."""
    logits, labels = (torch.from_numpy(record.arrays[name]) for name in ("logits", "labels"))
    log_probs = Prediction(logits.float()).combined
    return torch.stack([(log_probs.argmax(-1) == labels).float(), log_probs[range(len(labels)), labels]])


def _beside_the_paper(data: str) -> Evidence:
    """What there is a record of at full length, beside the paper's accuracies and calibration errors."""
    evidence = recorded("cifar-accuracy", "paper").where(data=data)
    calibration = evidence_of("cifar-calibration", "paper").where(data=data)
    return replace(evidence, published=(*evidence.published, *calibration.published))


def cifar_paper_members() -> str:
    """Of what the same networks' answers are made."""
    evidence = _measured("cifar-accuracy", "paper").where(data="CIFAR-10")
    return body(evidence, comparison(*MADE_OF))


def cifar_paper_shifted() -> str:
    """The same networks under corruption and on classes they have not seen."""
    return _shifted("paper")


def cifar_small() -> str:
    """CIFAR-10 in a few epochs of a narrow network."""
    evidence = _measured("cifar-accuracy", "small").where(data="CIFAR-10")
    return body(evidence, comparison("accuracy", "member_accuracy", "train_accuracy", "ece"), epochs=True)


def cifar_short() -> str:
    """CIFAR with the paper's networks and a fifth of its epochs."""
    return body(_measured("cifar-accuracy", "short"), comparison(*CLEAN, rows=("data", "method")), epochs=True)


def cifar_short_shifted() -> str:
    """The same networks under corruption and on classes they have not seen."""
    return _shifted("short")


def _shifted(scale: Scale) -> str:
    under, entropy = comparison(ACCURACY, NLL, ECE), comparison("auroc", KNOWN, UNKNOWN)
    return "\n\n".join(
        (body(_measured("cifar-corruption", scale), under), body(_measured("cifar-unseen", scale), entropy))
    )


def recipes() -> str:
    """Recipes of BatchEnsemble on CIFAR-100 in six epochs, the best ensemble first."""
    view = comparison("accuracy", "member_accuracy", "disagreement", "nll", "ece", "train_loss", rows="recipe")
    return body(_best_first(_measured("recipes", "paper")), view)


def fine_tuning() -> str:
    """Starts of members in a pre-trained network, tuned to few images, the best first."""
    view = comparison("accuracy", "member_accuracy", "disagreement", "nll", "ece", rows="recipe")
    return body(_best_first(_measured("fine-tuning", "small")), view)


def _best_first(evidence: Evidence) -> Evidence:
    """Rows by the mean of their accuracy."""
    accuracy = {place.labels["recipe"]: evidence.summary("accuracy", **place.labels) for place in evidence.places}
    means = {name: summary.mean if summary else 0.0 for name, summary in accuracy.items()}
    return replace(evidence, places=tuple(sorted(evidence.places, key=lambda place: -means[place.labels["recipe"]])))


def _measured(experiment: str, scale: Scale) -> Evidence:
    """What there is a record of, without the paper's numbers, which took many more epochs."""
    return replace(recorded(experiment, scale), published=())

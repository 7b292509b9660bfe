"""Evidence for every view."""

from itertools import product

import numpy as np
import pytest
from fake_records import CLASSES, CORRUPTIONS, METHODS, evidence, place

from batchensemble.lab.records import Published
from batchensemble.lab.report import Place


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def accuracy_evidence(rng):
    """Four methods on two data sets with three seeds; one seed and one whole method are missing."""
    places = []
    for (data, drop), (method, accuracy), seed in product(
        (("CIFAR-10", 0.0), ("CIFAR-100", 0.16)), METHODS.items(), range(3)
    ):
        labels = {"method": method, "data": data}
        if (method, data) == ("Naive ensemble", "CIFAR-100") or (method, seed) == ("MC-dropout", 2):
            places.append(Place(labels, seed))
            continue
        metrics = {
            "accuracy": accuracy - drop + 0.001 * rng.standard_normal(),
            "nll": 0.2 + drop,
            "ece": 0.03 + 0.001 * rng.standard_normal(),
            "epochs": 375 if method in ("BatchEnsemble", "MC-dropout") else 250,
            "parameters": 7_427_914 * (4 if method == "Naive ensemble" else 1),
            "training_seconds": 421.5 + rng.standard_normal(),
        }
        places.append(place(metrics, labels, seed))
    published = [
        Published({"method": method, "data": "CIFAR-10"}, "accuracy", value) for method, value in METHODS.items()
    ]
    return evidence(places, published)


@pytest.fixture
def shift_evidence(rng):
    places = []
    harm = dict(zip(CORRUPTIONS, rng.uniform(0.02, 0.13, len(CORRUPTIONS)), strict=True))
    methods = {"Single": 0.9531, "Naive ensemble": 0.963, "MC-dropout-8": 0.9572, "BatchEnsemble": 0.9594}
    methods |= {"BatchEnsemble + dropout-8": 0.957, "MC-dropout-128": 0.9573}
    for (method, clean), seed in product(methods.items(), range(2)):
        robust = 1 - (clean - 0.953) * 20
        rows = [{"corruption": "none", "severity": 0, "accuracy": clean, "ece": 0.03 * robust}]
        for (name, slope), severity in product(harm.items(), range(1, 6)):
            fall = slope * severity * (1 + 0.02 * rng.standard_normal())
            found = {"accuracy": clean - fall, "ece": 0.02 + 0.6 * fall * robust}
            rows.append({"corruption": name, "severity": severity, **found})
        places.append(place({"shift": rows, "epochs": 250}, {"method": method}, seed))
    return evidence(places)


@pytest.fixture
def diversity_evidence(rng):
    places = []
    apart = {"MC-dropout": 0.01, "BatchEnsemble": 0.045, "Naive ensemble": 0.05}
    shares = {"100 %": 0.955, "50 %": 0.925, "20 %": 0.845, "10 %": 0.72}
    for (share, accuracy), (method, amount) in product(shares.items(), apart.items()):
        members = 8 if method == "MC-dropout" else 4
        grown = amount if method == "MC-dropout" else amount * (1 - accuracy) / 0.045 / 1.5
        distance = np.abs(grown * (1 + 0.06 * rng.standard_normal(members)))
        distance[0] = 0
        members_accuracy = accuracy - 0.01 + 0.004 * rng.standard_normal(members)
        metrics = {
            "accuracy": accuracy,
            "member_accuracy": members_accuracy,
            "base_disagreement": distance,
            "base_disagreement_over_error": distance / (1 - members_accuracy),
            "disagreement": distance[1:].mean(),
        }
        places.append(place(metrics, {"method": method, "data": "CIFAR-10", "share": share}))
    return evidence(places)


@pytest.fixture
def unseen_evidence(rng):
    places = []
    spread = {"Single": 0.35, "MC-dropout": 0.45, "BatchEnsemble": 0.6, "Naive ensemble": 0.75}
    for (method, amount), seed in product(spread.items(), range(2)):
        arrays = {
            "entropy_known": rng.exponential(0.12, 4000).clip(0, 2.3).astype(np.float16),
            "entropy_unknown": rng.exponential(amount, 4000).clip(0, 2.3).astype(np.float16),
        }
        auroc = (arrays["entropy_unknown"] > arrays["entropy_known"]).mean()
        places.append(place({"auroc": auroc, "unseen": "cifar100-test"}, {"method": method}, seed, arrays))
    return evidence(places)


@pytest.fixture
def pictures_evidence(rng):
    """Twelve pictures; of the last four the single network is sure and wrong, and the ensemble right."""
    places = []
    for method in ("BatchEnsemble", "Naive ensemble"):
        labels = rng.integers(10, size=12)
        logits = rng.standard_normal((4, 12, 10)) * 1.4
        logits[:, np.arange(12), labels] += 4.0
        single = rng.standard_normal((12, 10))
        wrong = np.where(np.arange(12) < 8, labels, (labels + 3) % 10)
        single[np.arange(12), wrong] += 6.0
        arrays = {
            "pictures": _pictures(rng, labels),
            "labels": labels,
            "logits": logits.astype(np.float16),
            "single": single.astype(np.float16),
            "rows": np.arange(12),
        }
        metrics = {"accuracy": 0.95, "class_names": CLASSES}
        places.append(place(metrics, {"method": method, "data": "CIFAR-10"}, arrays=arrays))
    return evidence(places)


def _pictures(rng, labels):
    """Blobs `(N, 3, 32, 32)` on coloured grounds."""
    y, x = np.mgrid[:32, :32]
    ground = rng.integers(60, 200, (len(labels), 3, 1, 1)) * np.ones((1, 1, 32, 32))
    blob = ((x - 16) ** 2 + (y - 16) ** 2)[None, None] < (5 + labels)[:, None, None, None] ** 2
    return np.where(blob, 255 - ground, ground + 8 * rng.standard_normal(ground.shape)).clip(0, 255).astype(np.uint8)


@pytest.fixture
def cost_evidence(rng):
    rows = []
    for kind, members in product(("BatchEnsemble", "Naive, one by one", "Naive, at once"), (1, 2, 4, 8, 16)):
        ours = kind == "BatchEnsemble"
        time = {"BatchEnsemble": members**0.8, "Naive, one by one": members, "Naive, at once": members**0.9}[kind]
        relative = {
            "relative_seconds": time,
            "relative_memory": 1 + 0.35 * (members - 1) if ours else 0.4 + 0.6 * members,
            "relative_parameters": 1 + 0.0013 * members if ours else members,
        }
        rows.append({"kind": kind, "members": members, "seconds": 0.01 * time, "parameters": 7e6, **relative})
    metrics = {"single": {"seconds": 0.01, "parameters": 7e6, "memory": 1e9}, "cost": rows}
    return evidence([place(metrics, {"network": "ResNet-32x4"}, study="cost")])


@pytest.fixture
def recipes_evidence(rng):
    """Short runs on CIFAR-100, as measured for this project, and some more."""
    names = {
        "naive ensemble": (75.2, 20.1, 78.14),
        "signs, tile": (70.1, 25.0, 74.18),
        "signs, images": (70.0, 25.1, 73.89),
        "signs, P(+1) = .9": (71.7, 21.6, 74.76),
        "signs, last stage and head": (73.6, 13.3, 74.67),
        "N(1, .5), fast x0.5, tile": (74.1, 15.2, 75.45),
        "N(1, .5), fast x0.5, own crops": (74.2, 15.1, 75.65),
        "N(1, .5), fast x0.5, images": (73.7, 14.6, 75.32),
        "N(1, .5), BN per member": (74.9, 11.4, 75.90),
        "first layer only": (74.6, 6.1, 75.2),
        "rank 2": (73.1, 19.0, 75.6),
        "rank 4": (72.7, 20.3, 75.7),
        "KL loss": (72.0, 22.4, 75.0),
        "dropout on top": (73.0, 17.5, 75.2),
        "width x2": (70.9, 17.0, 73.3),
    }
    return evidence(
        place(
            {"member_accuracy": [members / 100] * 4, "disagreement": apart / 100, "accuracy": together / 100},
            {"recipe": name},
        )
        for name, (members, apart, together) in names.items()
    )


@pytest.fixture
def logits_evidence(rng):
    """Predictions that are too sure, the single network's most; the last ones are not sure enough."""
    places = []
    for method, sure in {"Single": 1.9, "MC-dropout": 1.5, "BatchEnsemble": 1.2, "Naive ensemble": 0.7}.items():
        honest = 2.2 * rng.standard_normal((3000, 10))
        powers = np.exp(honest)
        labels = (rng.random((3000, 1)) > (powers / powers.sum(-1, keepdims=True)).cumsum(-1)).sum(-1)
        members = sure * honest + 0.2 * rng.standard_normal((1 if method == "Single" else 4, 3000, 10))
        arrays = {"logits": members.astype(np.float16), "labels": labels.clip(max=9)}
        places.append(place({"ece": 0.1 * abs(sure - 1)}, {"method": method}, arrays=arrays))
    return evidence(places)


@pytest.fixture
def lifelong_evidence(rng):
    places = []
    forgets = {"Vanilla": 0.03, "EWC": 0.015, "PNN": 0.0, "BatchEnsemble": 0.0}
    for (method, loss), seed in product(forgets.items(), range(3)):
        learnt = 0.78 - (0.04 if method == "BatchEnsemble" else 0.0) + 0.03 * rng.standard_normal(20)
        matrix = [
            [max(0.2, learnt[task] - loss * (after - task)) if task <= after else None for task in range(20)]
            for after in range(20)
        ]
        seen = [float(np.mean([value for value in row if value is not None])) for row in matrix]
        metrics = {
            "accuracy_matrix": matrix,
            "seen_accuracy": seen,
            "average_accuracy": seen[-1],
            "forgetting": loss * 9.5,
            "relative_memory": {"PNN": 52.0, "BatchEnsemble": 1.05}.get(method, 1.0),
            "relative_time": {"PNN": 4.2, "EWC": 1.4, "BatchEnsemble": 1.08}.get(method, 1.0),
        }
        places.append(place(metrics, {"method": method}, seed, study="lifelong"))
    return evidence(places, [Published({"method": "PNN"}, "relative_memory", 50.0)])


@pytest.fixture
def bandit_evidence(rng):
    """Regret over time, thirty trials together in one record."""
    places = []
    slopes = {"Uniform": 1.0, "LinFullPost": 0.97, "Dropout": 0.17, "BatchEnsemble-8": 0.135, "RMS": 0.18}
    for problem, (method, slope) in product(("mushroom", "wheel"), slopes.items()):
        steps = np.arange(50, 2001, 50)
        curves = 2.6 * slope * steps ** (1 if slope > 0.5 else 0.9) * (1 + 0.15 * rng.standard_normal((30, 1)))
        metrics = {"steps": steps, "regret_curve": curves, "relative_regret": 100 * slope}
        places.append(place(metrics, {"method": method, "problem": problem}, study="bandits"))
    return evidence(places)


@pytest.fixture
def log_evidence(rng):
    places = []
    for (method, epochs), seed in product({"Single": 40, "BatchEnsemble": 60}.items(), range(3)):
        log = [
            {
                "epoch": epoch,
                "cross_entropy": 2.0 * 0.93**epoch * (1 + 0.04 * rng.standard_normal()) + 0.02,
                "accuracy": 1 - 0.6 * 0.93**epoch,
            }
            for epoch in range(epochs)
        ]
        places.append(place({"log": [log], "epochs": epochs}, {"method": method}, seed))
    return evidence(places)

"""Records as the studies write them, with numbers like the paper's and no training."""

import numpy as np
import pytest

from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import Published, Record, Run
from batchensemble.lab.report.evidence import Evidence, Place

WHERE = Provenance(
    "NVIDIA H200",
    {"python": "3.12.3", "batchensemble": "0.1.0", "torch": "2.13.0", "numpy": "2.4.6"},
    "0123456789ab",
    False,
    "2026-01-02T03:04:05+00:00",
    421.5,
)
METHODS = {"Single": 0.9531, "MC-dropout": 0.9572, "BatchEnsemble": 0.9594, "Naive ensemble": 0.9630}
CORRUPTIONS = (
    "gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "gaussian_blur", "glass_blur", "defocus_blur",
    "motion_blur", "zoom_blur", "fog", "frost", "snow", "spatter", "contrast", "brightness", "saturate",
    "jpeg_compression", "pixelate", "elastic_transform",
)  # fmt: skip


def place(metrics, labels, seed=0, arrays=None, scale="small", study="classification"):
    run = Run(study, dict(labels), scale, seed)
    return Place(labels, seed, Record(run, metrics, WHERE, arrays or {}))


def missing(labels, seed=0):
    return Place(labels, seed)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def accuracy_evidence(rng):
    """Four methods on two data sets with three seeds; one seed and one whole method are missing."""
    places = []
    for data, drop in (("CIFAR-10", 0.0), ("CIFAR-100", 0.16)):
        for method, accuracy in METHODS.items():
            for seed in range(3):
                labels = {"method": method, "data": data}
                if (method, data) == ("Naive ensemble", "CIFAR-100") or (method, seed) == ("MC-dropout", 2):
                    places.append(missing(labels, seed))
                    continue
                metrics = {
                    "accuracy": accuracy - drop + 0.001 * rng.standard_normal(),
                    "nll": 0.2 + drop,
                    "ece": 0.03,
                    "epochs": 375 if method in ("BatchEnsemble", "MC-dropout") else 250,
                    "parameters": 7_427_914,
                    "training_seconds": 421.5,
                }
                places.append(place(metrics, labels, seed))
    published = tuple(
        Published({"method": method, "data": "CIFAR-10"}, "accuracy", value) for method, value in METHODS.items()
    )
    return Evidence("cifar-accuracy", "small", tuple(places), published)


@pytest.fixture
def shift_evidence(rng):
    places = []
    harm = dict(zip(CORRUPTIONS, rng.uniform(0.02, 0.13, len(CORRUPTIONS)), strict=True))
    methods = {**METHODS, "BatchEnsemble + dropout": 0.957}
    for method, clean in methods.items():
        robust = 1 - (clean - 0.953) * 20
        for seed in range(2):
            rows = [{"corruption": "none", "severity": 0, "accuracy": clean, "ece": 0.03 * robust}]
            for name, slope in harm.items():
                for severity in range(1, 6):
                    fall = slope * severity * (1 + 0.02 * rng.standard_normal())
                    found = {"accuracy": clean - fall, "ece": 0.02 + 0.6 * fall * robust}
                    rows.append({"corruption": name, "severity": severity, **found})
            places.append(place({"shift": rows, "epochs": 250}, {"method": method}, seed))
    return Evidence("corruption", "small", tuple(places))

"""Records as the studies write them, with numbers like the paper's and no training."""

from batchensemble.lab.provenance import Provenance
from batchensemble.lab.records import Record, Run
from batchensemble.lab.report import Evidence, Place

WHERE = Provenance(
    "NVIDIA H200",
    {"python": "3.12.3", "batchensemble": "0.1.0", "torch": "2.13.0", "numpy": "2.4.6"},
    "0123456789ab",
    False,
    "2026-01-02T03:04:05+00:00",
    421.5,
)
METHODS = {"Single": 0.9531, "MC-dropout": 0.9572, "BatchEnsemble": 0.9594, "Naive ensemble": 0.9630}
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CORRUPTIONS = (
    "gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "gaussian_blur", "glass_blur", "defocus_blur",
    "motion_blur", "zoom_blur", "fog", "frost", "snow", "spatter", "contrast", "brightness", "saturate",
    "jpeg_compression", "pixelate", "elastic_transform",
)  # fmt: skip


def place(metrics, labels, seed=0, arrays=None, scale="small", study="classification"):
    """A run that was run; what it measures is among its settings, as in the studies."""
    run = Run(study, {**labels, "measures": sorted(metrics)}, scale, seed)
    return Place(labels, seed, Record(run, metrics, WHERE, arrays or {}))


def evidence(places, published=(), scale="small"):
    return Evidence("an-experiment", scale, tuple(places), tuple(published))


class FakeExperiment:
    """An experiment that has its evidence already; `lab.experiments` is not needed to test the report."""

    def __init__(self, id, found, *show, item="Table 1", claim="Ensembles are better."):
        self.id, self.item, self.claim, self.show = id, item, claim, show
        self.found = {found.scale: found} if isinstance(found, Evidence) else found
        self.scales = dict.fromkeys(("smoke", "small", "paper"))
        self.published = next(iter(self.found.values())).published if self.found else ()

    def evidence(self, records, scale):
        there = {record.run: record for record in records}
        found = self.found.get(scale, Evidence(self.id, scale, ()))
        places = (
            Place(one.labels, one.seed, there.get(one.record.run) if one.record else None) for one in found.places
        )
        return Evidence(self.id, scale, tuple(places), found.published)

    @property
    def records(self):
        return [result.record for found in self.found.values() for result in found.results]

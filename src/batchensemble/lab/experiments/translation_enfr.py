"""English to French."""

from dataclasses import replace

from batchensemble.lab.experiments.experiment import Experiment, Grid
from batchensemble.lab.experiments.translators import (
    BASE,
    BATCH,
    BIG,
    DROPOUT,
    MULTI30K,
    SINGLE,
    TOY,
    of,
    rows,
    shown,
)
from batchensemble.lab.records import Published
from batchensemble.lab.studies.translation import TRANSLATION

PERPLEXITY = {SINGLE: 2.76, DROPOUT: 2.77, BATCH: 2.74}

TRANSLATION_ENFR = Experiment(
    id="translation-enfr",
    item='Table "Perplexity on Newstest2013", figure of validation loss: English to French',
    claim="With members in every self-attention a Transformer has a lower perplexity than one network and than "
    "MC-dropout, and gets there faster.",
    study=TRANSLATION,
    scales={
        "smoke": Grid(rows("Toy language", "toy", replace(TOY, data="toy-pieces"), SINGLE, DROPOUT, BATCH, samples=4)),
        "small": Grid(
            rows("Multi30k", "small", replace(MULTI30K, data="multi30k-fr"), SINGLE, BATCH, DROPOUT), seeds=(0, 1, 2)
        ),
        "paper": Grid(
            (
                *rows("WMT14", "base", replace(BASE, data="wmt14-fr"), SINGLE, BATCH),
                *rows("WMT14", "big", replace(BIG, data="wmt14-fr", dropout=0.1), SINGLE, DROPOUT, BATCH),
            )
        ),
    },
    show=shown(("Multi30k", "small"), ("WMT14", "big")),
    published=tuple(Published(of("WMT14", "big", method), "perplexity", value) for method, value in PERPLEXITY.items()),
)

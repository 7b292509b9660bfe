"""Translation."""

from statistics import mean
from typing import Any

from batchensemble.lab.report.evidence import Evidence
from batchensemble.lab.report.views import comparison
from drawn.records import body, evidence_of, made, markdown, speeds

COSTS = {
    "training": "time of a training step, over one network on the same batch",
    "decoding": "time of decoding with beam 4, over one network with beam 16 (as many rows)",
}


def translation() -> str:
    """Perplexity and BLEU on Multi30k."""
    return body(_multi30k(), comparison("perplexity", "test_perplexity", "bleu", "parameters"))


def translation_curves() -> str:
    """Validation loss and BLEU on the way, means over seeds."""
    evidence = _multi30k()
    ways = [_curves(evidence.where(method=method)) for method in ("Single", "BatchEnsemble")]
    rows = []
    for step in ways[0]["bleu_curve"]:
        losses = (f"{way['validation_loss'][step]:.2f}" for way in ways)
        scores = (f"{way['bleu_curve'][step]:.1f}" for way in ways)
        rows.append((str(step), *losses, *scores))
    columns = ("step", "loss, one network", "loss, BatchEnsemble", "BLEU, one network", "BLEU, BatchEnsemble")
    return markdown(columns, rows, labels=0)


def translation_cost() -> str:
    """What members cost a Transformer, measured alone on a GPU."""
    return "\n\n".join(map(_cost_table, speeds("speed-translation")))


def _cost_table(content: dict[str, Any]) -> str:
    rows = [(words, f"{content[name]['ratio']:.2f}") for name, words in COSTS.items()]
    return f"{markdown(('Transformer, 4 members', 'ratio'), rows)}\n\n{made(content['provenance'])}."


def _multi30k() -> Evidence:
    return evidence_of("translation-ende", "small").where(data="Multi30k")


def _curves(part: Evidence) -> dict[str, dict[int, float]]:
    """The mean curves of loss and BLEU by step."""
    axes = {"validation_loss": "steps", "bleu_curve": "bleu_steps"}
    every = [result.record.metrics for result in part.results]
    return {
        metric: {step: mean(one[metric][place] for one in every) for place, step in enumerate(every[0][axis])}
        for metric, axis in axes.items()
    }

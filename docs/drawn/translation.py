"""Translation."""

from statistics import mean

from batchensemble.lab.report.evidence import Evidence
from batchensemble.lab.report.views import comparison
from drawn.records import body, evidence_of, made, speeds


def translation() -> str:
    """Perplexity and BLEU on Multi30k."""
    return body(_multi30k(), comparison("perplexity", "test_perplexity", "bleu", "parameters"))


def translation_curves() -> str:
    """Validation loss and BLEU on the way, means over seeds."""
    evidence = _multi30k()
    ways = [_curves(evidence.where(method=method)) for method in ("Single", "BatchEnsemble")]
    lines = [
        "| step | loss, one network | loss, BatchEnsemble | BLEU, one network | BLEU, BatchEnsemble |",
        "|---:" * 5 + "|",
    ]
    for step in ways[0]["bleu_curve"]:
        losses = (f"{way['validation_loss'][step]:.2f}" for way in ways)
        scores = (f"{way['bleu_curve'][step]:.1f}" for way in ways)
        lines.append(f"| {step} | {' | '.join((*losses, *scores))} |")
    return "\n".join(lines)


def translation_cost() -> str:
    """What members cost a Transformer, measured alone on a GPU."""
    lines = ["| Transformer, 4 members | ratio |", "|---|---|"]
    for content in speeds("speed-translation"):
        training, decoding = (content[name]["ratio"] for name in ("training", "decoding"))
        lines.append(f"| time of a training step, over one network on the same batch | {training:.2f} |")
        lines.append(f"| time of decoding with beam 4, over one network with beam 16 (as many rows) | {decoding:.2f} |")
        lines += ["", f"{made(content['provenance'])}."]
    return "\n".join(lines)


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

"""Write the numbers of README and docs from the records in results/; with --check, only see that they are up to date.

    python docs/make_numbers.py [--check]

A page marks the place: everything between `<!-- numbers: NAME -->` and `<!-- end -->` is drawn by the function of that
name below.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs" / "findings.md", ROOT / "docs" / "cost.md", ROOT / "docs" / "bandits.md"]
LIMIT = "the plain network on as many rows"
MARK = re.compile(r"(<!-- numbers: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def speed() -> str:
    """Our time over the limit, a table for every machine; records of `batchensemble bench`."""
    paths = sorted((ROOT / "results" / "speed").glob("*.json"))
    return "\n\n".join(_speed_of(json.loads(path.read_text())) for path in paths)


def _speed_of(record: dict[str, Any]) -> str:
    metrics, made = record["metrics"], record["provenance"]
    members = record["run"]["settings"]["members"]
    lines = [
        f"| {metrics['network']}, {members} members | the limit | ours | ratio | memory |",
        "|---|---|---|---|---|",
    ]
    over = [row for row in metrics["rows"] if row["denominator"] == LIMIT and row["way"] == "BatchEnsemble"]
    for row in over:
        memory = "" if row["memory_ratio"] is None else f"{row['memory_ratio']:.2f}"
        times = f"{row['denominator_ms']:.2f} ms | {row['ms']:.2f} ms | {row['ratio']:.2f}"
        lines.append(f"| {row['case']} | {times} | {memory} |")
    how = " or ".join(dict.fromkeys(row["denominator_how"] for row in over))
    limit = f"The limit is {LIMIT} (inference: members x inputs), {how}."
    where = f"{made['hardware']}, torch {made['versions']['torch']}, commit {made['commit']}"
    return "\n".join([*lines, "", f"{limit} {where}."])


def single() -> str:
    """Single networks on CIFAR-10 at paper scale."""
    found = [record for record in _records("paper", "classification") if _recipe(record)["method"]["name"] == "single"]
    clean = [record["metrics"] for record in found if record["run"]["settings"]["test"] == "clean"]
    unseen = [record["metrics"] for record in found if record["run"]["settings"]["test"] == "unseen"]
    shift = [row for record in found for row in record["metrics"].get("shift", [])]
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
    made = found[0]["provenance"]
    where = f"{made['hardware']}, torch {made['versions']['torch']}, commit {made['commit']}"
    return "\n".join([*lines, "", f"Scale `paper`: 250 epochs, {len(clean)} seeds; {where}."])


def bandits() -> str:
    """Mean values of the bandit table at the largest scale that was played, best first; nothing before that."""
    from batchensemble.lab.experiments.bandits import BANDITS
    from batchensemble.lab.report.bandits import REGRET, VALUE, Regrets, over_trials
    from batchensemble.lab.store import Store

    records = [record for record in Store(ROOT / "results").all() if record.run.study == "bandits"]
    found = [BANDITS.evidence(records, scale) for scale in ("paper", "small")]
    evidence = next(one for one in found if not one.missing)
    regrets = Regrets.of(evidence)
    lines = [f"| method | mean value | the paper's | {' | '.join(regrets.problems)} |", "|---" * 8 + "|"]
    for method in sorted(regrets.complete, key=lambda one: float(regrets.value(one).mean())):
        value = over_trials(regrets.value(method))
        paper = " / ".join(VALUE.text(number.value) for number in evidence.paper("mean_value", method=method))
        cells = (REGRET.text(regrets.trials[method, problem].mean().item()) for problem in regrets.problems)
        lines.append(f"| {method} | {VALUE.summary(value)} | {paper} | {' | '.join(cells)} |")
    made = evidence.results[0].record.provenance
    where = f"{made.hardware}, torch {made.versions['torch']}, commit {made.commit}"
    trials = len(regrets.value("Uniform"))
    return "\n".join(
        [*lines, "", f"Scale `{evidence.scale}`: {trials} trials of 2000 contexts, ± standard error; {where}."]
    )


NUMBERS: dict[str, Callable[[], str]] = {"speed": speed, "single": single, "bandits": bandits}


def _records(scale: str, study: str) -> list[dict[str, Any]]:
    records = [json.loads(path.read_text()) for path in (ROOT / "results" / scale).glob(f"{study}-*.json")]
    return sorted(records, key=lambda record: record["run"]["seed"])


def _recipe(record: dict[str, Any]) -> dict[str, Any]:
    recipe: dict[str, Any] = record["run"]["settings"]["recipe"]
    return recipe


def drawn(text: str) -> str:
    """A page with its numbers as the records have them."""
    return MARK.sub(lambda match: f"{match[1]}{NUMBERS[match[2]]()}\n{match[3]}", text)


def main() -> int:
    """Write the pages, or say which are out of date."""
    stale = [page for page in PAGES if drawn(page.read_text()) != page.read_text()]
    if "--check" in sys.argv:
        for page in stale:
            print(f"{page.relative_to(ROOT)} is out of date: run python docs/make_numbers.py")
        return len(stale)
    for page in stale:
        page.write_text(drawn(page.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

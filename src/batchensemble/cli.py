"""The command line: batchensemble demo | list | run | report | data | translate | bench."""

import difflib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape
from rich.table import Table as RichTable

from batchensemble.disk import check_writable
from batchensemble.lab.experiments import EXPERIMENTS, Experiment
from batchensemble.lab.experiments.digits import DIGITS, NOISE
from batchensemble.lab.experiments.jobs import jobs_of
from batchensemble.lab.experiments.translators import until
from batchensemble.lab.records import SCALES, Scale
from batchensemble.lab.report import write_report
from batchensemble.lab.report.chapters import section_of
from batchensemble.lab.report.circumstances import SCALE_MEANING
from batchensemble.lab.report.evaluate import show_readable
from batchensemble.lab.report.terminal import drawn, print_whole
from batchensemble.lab.store import Skipped, Store, UnreadableRecord
from batchensemble.lab.studies.classification.corrupted import prepare_corrupted
from batchensemble.lab.studies.images import load_images
from batchensemble.lab.studies.perform import Failure, Job, in_words, perform_all, refused
from batchensemble.lab.studies.speed import command as speed
from batchensemble.lab.studies.study import Context
from batchensemble.lab.studies.translation.command import find_translator, translated_lines
from batchensemble.lab.training.devices import device_kind, is_one_of_several, start_fabric
from batchensemble.lab.training.progress import Progress, bars
from batchensemble.lifelong import Diverged
from batchensemble.locks import Busy
from batchensemble.options import (
    DataOption,
    DeviceOption,
    DevicesOption,
    Ids,
    OnlyOption,
    OutOption,
    ResultsOption,
    ScaleOption,
    SeedsOption,
    SharedOption,
    UntilOption,
    VersionOption,
    WaitOption,
    WorkOption,
    free_folder,
)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()
DEMO = (
    "How to read it: BatchEnsemble has a few percent more parameters than one network, the naive ensemble four times "
    "as many. Trained on so few digits, its members together are on average more accurate than one network and have a "
    "lower NLL, though seeds differ by about as much. Like the naive ensemble they are underconfident here, hence the "
    "higher ECE. Members agree on digits and disagree on noise: that is what mutual information measures. Training "
    "times are for the epochs in the last column. More: docs/findings.md."
)
FILES = ("cifar10", "cifar100", "cifar10-c", "cifar100-c")  # data sets kept in files; others are generated on the fly
ITEM = "the paper's item"
TRACEBACK = "BATCHENSEMBLE_TRACEBACK"  # environment variable: stop at the first error, and show where it comes from
MOST_SEED = 2**32 - 1  # generators take twice as many bits, which leaves room to derive the seeds of members and tasks


@app.callback()
def main(version: VersionOption = False) -> None:
    """An ensemble in the memory of one network, and the paper's laboratory."""


@app.command("list")
def list_(results: ResultsOption = Path("results")) -> None:
    """Show the experiments, and how many of their runs are recorded."""
    store = Store(results)
    table, headings = RichTable(box=None, pad_edge=False), ("id", ITEM, *SCALES)
    rows = [(e.id, e.item, *(_count(e, scale, store) for scale in SCALES)) for e in EXPERIMENTS.values()]
    for heading, texts in zip(headings, zip(headings, *rows, strict=True), strict=True):
        least = len(ITEM) if heading == ITEM else max(map(len, texts))  # a truncated count would be a different number
        table.add_column(heading, min_width=least, overflow="fold")
    for row in rows:
        table.add_row(*row)
    print_whole(console, table)
    words = (
        f"\nRecorded runs / all runs, in the folder {results}. Start with: batchensemble demo, a minute; "
        "or batchensemble run all --scale smoke, some minutes"
    )
    _say(words, style="dim")


@app.command()
def run(
    ids: Ids,
    scale: ScaleOption = "smoke",
    data: DataOption = None,
    results: ResultsOption = Path("results"),
    work: WorkOption = Path("runs"),
    device: DeviceOption = "auto",
    devices: DevicesOption = 1,
    seeds: SeedsOption = "",
    only: OnlyOption = None,
    until_perplexity: UntilOption = None,
    wait: WaitOption = False,
    shared: SharedOption = False,
) -> None:
    """Run experiments; recorded runs are not repeated, and interrupted ones resume.

    For example: batchensemble run bandits --scale small --data DATA
    """
    experiments, chosen = _experiments(ids, scale), _seeds(seeds)
    context = Context(data, work, device, devices, wait=wait, shared=shared)
    store = Store(results)
    with _plain_errors("what is recorded stays, and the same command goes on from there"):
        if until_perplexity is not None:
            experiments = [until(experiment, until_perplexity) for experiment in experiments]
        jobs = jobs_of(experiments, scale, chosen, only or ())
        failures, skipped = _perform(jobs, store, context, leave_out="all" in ids), list[UnreadableRecord]()
        for experiment in experiments:
            _print(experiment, scale, store, chosen, skipped.append)
        known = {failure.why for failure in failures}
        _exit_if(*in_words(failures), *(str(error) for error in skipped if str(error) not in known))


@app.command()
def report(
    results: ResultsOption = Path("results"),
    out: OutOption = Path("report"),
) -> None:
    """Draw every table and figure from the records: one HTML page, Markdown, CSV, SVG and PNG. Nothing is trained."""
    with _plain_errors():
        if not results.is_dir():
            raise FileNotFoundError(f"there is no folder {results} with records: name it with --results")
        check_writable(out / "report.html")  # before drawing
        skipped: list[UnreadableRecord] = []
        records = list(Store(results).all(skipped.append))
        if not records:
            _say(f"there are no records in {results}: the report says only what could be run")
        files = write_report(records, EXPERIMENTS.values(), out, progress=True, skipped=skipped.append)
        _say(f"{len(files)} files; open {files[0]}")
        for error in skipped:
            _complain("left out", str(error))


@app.command()
def data(
    names: Annotated[list[str], typer.Argument(help=", ".join(FILES), show_default=False)],
    data: Annotated[
        Path | None, typer.Option("--data", callback=free_folder, help="Folder to keep them in; a cache by default.")
    ] = None,
) -> None:
    """Download data sets to where experiments look for them, and verify them; corrupted versions are generated."""
    with _plain_errors():
        if unknown := [name for name in names if name not in FILES]:
            raise ValueError(f"data sets are {', '.join(FILES)}; got {', '.join(unknown)}")
        for name in names:
            train, test = load_images(name.removesuffix("-c"), data)
            where = f", corrupted in {prepare_corrupted(test, data)}" if name.endswith("-c") else ""
            _say(f"{name}: {len(train):,} training and {len(test):,} test images{where}")


@app.command()
def demo(device: DeviceOption = "auto", work: WorkOption = Path("runs/demo")) -> None:
    """Train every method on handwritten digits, side by side, with three seeds, in about a minute."""
    torch.set_num_threads(1)  # networks this small are no faster on several cores, and much slower on busy ones
    with _plain_errors(), tempfile.TemporaryDirectory() as fresh:
        store = Store(work / "results")
        experiments = (DIGITS, NOISE)  # of the same networks
        jobs = jobs_of(experiments, "smoke")
        for job in jobs:
            store.path(job.run).unlink(missing_ok=True)  # a demo should show the work
        _say_in_a_log(f"{len(jobs)} runs, about a minute")
        _exit_if(*in_words(_perform(jobs, store, Context(None, Path(fresh), device), announce=lambda line: None)))
        for experiment in experiments:
            _print(experiment, "smoke", store, None)
        page = write_report(store.all(), experiments, work, progress=True)[0]
        _say(f"\n{DEMO}\nThe same with pictures: {page}")


@app.command()
def translate(
    model: Annotated[str, typer.Argument(help="A translator's folder, or the name of its weights in a record.")],
    uncertainty: Annotated[bool, typer.Option("--uncertainty", help="Print the members' disagreement, too.")] = False,
    beams: Annotated[int, typer.Option(help="Number of beams.")] = 4,
    alpha: Annotated[float, typer.Option(help="Exponent of the length penalty.")] = 0.6,
    device: DeviceOption = "auto",
    work: WorkOption = Path("runs"),
) -> None:
    """Translate lines from standard input with a model that `run` has trained."""
    with _plain_errors():
        folder, lines = find_translator(model, work), sys.stdin.buffer
        for line in translated_lines(folder, lines, beams=beams, alpha=alpha, uncertainty=uncertainty, device=device):
            typer.echo(line.encode())  # as it is read: UTF-8, whatever the terminal's encoding


@app.command()
def bench(
    network: Annotated[str | None, typer.Option(help="resnet32x4, resnet14 or mlp.", show_default="resnet32x4")] = None,
    members: Annotated[int | None, typer.Option(help="Members of every ensemble.", show_default="4")] = None,
    inputs: Annotated[str | None, typer.Option(help="Batch sizes for inference.", show_default="8,128,512")] = None,
    rows: Annotated[
        str | None, typer.Option(help="Batch sizes for a training step.", show_default="128,512,1024")
    ] = None,
    layers: Annotated[
        str | None, typer.Option(help="Single linear layers, as MEMBERSxROWSxWIDTH; '' for none.", show_default="three")
    ] = None,
    repeats: Annotated[int | None, typer.Option(help="Repetitions; their median counts.", show_default="30")] = None,
    compiled: Annotated[
        bool | None, typer.Option("--compile/--no-compile", help="Use torch.compile.", show_default="on a GPU")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Only cases whose names contain this.")] = None,
    way: Annotated[list[str] | None, typer.Option(help="Only this kind of ensemble, e.g. BatchEnsemble.")] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(help="Fail above this ratio, e.g. 'training step, 128 rows=1.10' or 'memory of ...=1.5'."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Tiny sizes, to check that it runs.")] = False,
    out: Annotated[Path, typer.Option("--out", help="File to write the record to.")] = Path("speed.json"),
    device: DeviceOption = "auto",
) -> None:
    """Compare the speed of ensembles with that of one network, independent networks and other libraries."""
    how: dict[str, Any] = {"network": network, "members": members, "inputs": inputs, "rows": rows, "layers": layers}
    how |= {"repeats": repeats, "compiled": compiled, "only": only, "ways": way}
    with _plain_errors():
        settings = speed.read_settings(quick, **how)
        limits = speed.read_limits(limit or [], settings)
        with bars(console) as progress:
            record = speed.measured(settings, quick, Context(device=device, progress=progress), out)
        for table in speed.tables(record):
            print_whole(console, table)
            console.print()
        for name, reason in record.metrics["skipped"].items():
            _say(f"{name}: not measured, {reason}")
        _say(f"Written to {out}")
        if broken := list(speed.exceeded(record.metrics["rows"], limits)):
            raise ValueError("; ".join(broken))


def _say(text: str, **how: Any) -> None:
    """Print a text as it is: brackets in names are no markup, and numbers need no colours."""
    console.print(text, markup=False, highlight=False, **how)


def _perform(
    jobs: Sequence[Job],
    store: Store,
    context: Context,
    *,
    leave_out: bool = False,
    announce: Callable[[str], None] | None = None,
) -> list[Failure]:
    """Perform every run, with a bar for all and bars for the current one; output to a file gets a line per run.

    What cannot be run here is refused before the first run and before other processes are started, or left out.
    """
    device_kind(context.device, context.devices)
    cannot = refused(jobs, store, context)
    if cannot and not leave_out:
        raise ValueError(cannot[0].why)
    without = {failure.job for failure in cannot}
    stop = bool(os.environ.get(TRACEBACK))
    with _progress(context) as progress:
        for words in in_words(cannot):
            _complain("left out", words, quiet=console.quiet)
        able = [job for job in jobs if job not in without]
        return perform_all(able, store, replace(context, progress=progress), announce or _say_in_a_log, stop=stop)


def _exit_if(*errors: str) -> None:
    """Report errors, each once, and exit; without any, go on."""
    for words in dict.fromkeys(errors):
        _complain("error", words)
    if errors:
        raise typer.Exit(1)


def _complain(heading: str, words: str, *, quiet: bool = False) -> None:
    """Print a line to standard error, unless `quiet`."""
    stderr = Console(stderr=True, quiet=quiet)
    stderr.print(f"[red]{heading}:[/red] {escape(words)}", highlight=False, soft_wrap=True)


def _say_in_a_log(line: str) -> None:
    """Print a line where no bars are shown."""
    if not console.is_terminal:
        _say(line, soft_wrap=True)


@contextmanager
def _progress(context: Context) -> Iterator[Progress]:
    """Show bars, in only one of several processes."""
    first = not is_one_of_several(context.devices) or start_fabric(context.device, context.devices).is_global_zero
    console.quiet = not first
    with bars(console) if first else nullcontext(Progress()) as progress:
        yield progress


def _print(
    experiment: Experiment, scale: Scale, store: Store, seeds: Sequence[int] | None, skipped: Skipped | None = None
) -> None:
    """Print the first table of an experiment, and those of its claims that the scale can say something about."""
    records = list(store.some((case.run for case in experiment.cases(scale, seeds)), skipped))
    if not records:
        return
    section = show_readable(
        lambda some: section_of(experiment.evidence(some, scale, seeds), experiment.show), records, skipped
    )
    console.print(f"\n[bold]{experiment.id}[/bold]: {escape(experiment.item)}", highlight=False)
    _say(f"{scale} scale: {SCALE_MEANING[scale]}", style="dim")
    for check in section.measured if scale != "smoke" else ():
        console.print(Markdown(check.markdown()))
    if section.tables:
        print_whole(console, drawn(section.tables[0], console.width))
    else:
        _say(f"A figure: batchensemble report --results {store.folder}", style="dim")


def _count(experiment: Experiment, scale: Scale, store: Store) -> str:
    if scale not in experiment.scales:
        return ""
    runs = {case.run for case in experiment.cases(scale)}  # without further seeds, as in the report
    return f"{sum(map(store.has, runs))}/{len(runs)}"


def _experiments(ids: Sequence[str], scale: Scale) -> list[Experiment]:
    """The experiments with these ids; `all` stands for those that have the scale."""
    for name in ids:
        if name not in (*EXPERIMENTS, "all"):
            near = difflib.get_close_matches(name, EXPERIMENTS, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(EXPERIMENTS)}."
            raise typer.BadParameter(f"no experiment is called {name!r}: {hint}", param_hint="ID")
    if "all" not in ids:
        return [EXPERIMENTS[name] for name in dict.fromkeys(ids)]
    there = [experiment for experiment in EXPERIMENTS.values() if scale in experiment.scales]
    if not there:
        raise typer.BadParameter(f"no experiment has the scale {scale}.", param_hint="--scale")
    return there


def _seeds(text: str) -> list[int] | None:
    parts = text.split(",") if text else []
    if not all(part.strip().isdecimal() for part in parts):
        raise typer.BadParameter(f"expected numbers like 0,1,2; got {text!r}.", param_hint="--seeds")
    if large := [part for part in parts if int(part) > MOST_SEED]:
        raise typer.BadParameter(f"a seed is at most {MOST_SEED}; got {large[0]}.", param_hint="--seeds")
    return [int(part) for part in parts] or None


@contextmanager
def _plain_errors(interrupted: str = "nothing is half-written") -> Iterator[None]:
    """Report errors that a user can fix in one line, without a traceback (`BATCHENSEMBLE_TRACEBACK=1` shows it)."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader has seen enough; nothing to report
    except KeyboardInterrupt:
        _complain("interrupted", interrupted, quiet=console.quiet)  # only one of several processes prints it
        raise typer.Exit(130) from None
    except (Busy, Diverged, ImportError, OSError, ValueError) as error:
        if os.environ.get(TRACEBACK):
            raise
        _exit_if(str(error))

"""The options of the command line, and their checks."""

from pathlib import Path
from typing import Annotated

import typer

from batchensemble import __version__
from batchensemble.lab.records import Scale
from batchensemble.lab.training.devices import Device


def _show_version(asked: bool) -> None:
    if asked:
        print(f"batchensemble {__version__}")
        raise typer.Exit


def existing_folder(path: Path | None) -> Path | None:
    """Check that a path is a folder."""
    if path is not None and not path.is_dir():
        raise typer.BadParameter(f"{path} is not a folder.")
    return path


def free_folder(path: Path | None) -> Path | None:
    """Check that a path is a folder, or free for one to be created."""
    return path if path is None or not path.exists() else existing_folder(path)


VersionOption = Annotated[
    bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
]
Ids = Annotated[list[str], typer.Argument(help="Experiments by id (see `list`), or `all`.", show_default=False)]
ScaleOption = Annotated[
    Scale,
    typer.Option(
        metavar="<scale>",  # typer's own, with every scale in it, breaks in the middle of a word
        help="smoke: seconds on a CPU; small: minutes; short: the published setting with a fifth of its epochs; "
        "paper: the published setting.",
    ),
]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", callback=existing_folder, help="Folder with the data sets; a cache by default."),
]
ResultsOption = Annotated[Path, typer.Option("--results", callback=free_folder, help="Folder with the records.")]
WorkOption = Annotated[Path, typer.Option("--work", callback=free_folder, help="Folder for checkpoints and logs.")]
OutOption = Annotated[Path, typer.Option("--out", callback=free_folder, help="Folder to write the report to.")]
DeviceOption = Annotated[Device, typer.Option(help="Where to compute; auto is a GPU if there is one.")]
DevicesOption = Annotated[
    int, typer.Option(min=1, help="Number of devices to train on together; `torchrun` works, too.")
]
SeedsOption = Annotated[str, typer.Option(help="Seeds to use instead of the experiments' own, e.g. 0,1,2.")]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(help="Only rows with this label, e.g. 'Single'; given several times, only rows with all of them."),
]
UntilOption = Annotated[
    float | None, typer.Option(help="Stop translators at this validation perplexity, and show how long they took.")
]
WaitOption = Annotated[bool, typer.Option("--wait", help="Wait for runs that another process is working on.")]
SharedOption = Annotated[
    bool, typer.Option("--shared", help="Leave times out of the records, because other work shares the machine.")
]

"""The command line, `batchensemble` or `python -m batchensemble`; if a package is missing, it says what to install."""

import io
import sys

from batchensemble.extras import how_to_install


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ± shows a question mark, and all the rest
    try:
        from batchensemble.cli import app
    except ModuleNotFoundError as error:
        if (error.name or "batchensemble").startswith("batchensemble"):
            raise
        raise SystemExit(f"batchensemble: there is no {error.name} here; {how_to_install('lab')}") from None
    app()


if __name__ == "__main__":
    main()

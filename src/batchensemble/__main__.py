"""The command line, `batchensemble` or `python -m batchensemble`; if a package is missing, it says what to install."""


def main() -> None:
    """Run the command line."""
    try:
        from batchensemble.cli import app
    except ModuleNotFoundError as error:
        if (error.name or "batchensemble").startswith("batchensemble"):
            raise
        raise SystemExit(f"batchensemble: there is no {error.name} here; pip install 'batchensemble[lab]'") from None
    app()


if __name__ == "__main__":
    main()

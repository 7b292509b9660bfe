"""One function per kind of work: `run(run, context) -> Record`."""

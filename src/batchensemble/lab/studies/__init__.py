"""Studies, the kinds of work: each is a function `run(run, context) -> Record`."""

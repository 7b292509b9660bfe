# Two commands do everything on a fresh machine: `make demo` and `make test`.
VENV   := .venv
PYTHON := $(VENV)/bin/python
READY  := $(VENV)/.ready

.PHONY: demo test format lint types tests docs clean

demo: $(READY)
	$(VENV)/bin/batchensemble demo

test: $(READY) lint types tests docs

lint: $(READY)
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .

format: $(READY)
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

types: $(READY)
	$(VENV)/bin/mypy

tests: $(READY)
	OMP_NUM_THREADS=1 $(PYTHON) -m pytest -q -n 2 --dist loadfile --doctest-modules --durations 8

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict

# Reinstalled only when what is pinned or declared changes.
$(READY): pyproject.toml constraints.txt
	test -x $(PYTHON) || python3 -m venv $(VENV)
	$(PYTHON) -m pip install --quiet -c constraints.txt torch
	$(PYTHON) -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $(READY)

clean:
	rm -rf $(VENV) site dist .mypy_cache .pytest_cache .ruff_cache

# From a fresh clone, with Python 3.11+, pip and make:
#   make demo   the environment, then the main job on a built-in collection
#   make test   the environment, then the tests
PYTHON ?= python3
BIN := .venv/bin
# The benchmark datasets, where there are any beside the checkout.
ifneq ($(wildcard ../shared/datasets),)
export SAEN_DATA ?= $(abspath ../shared/datasets)
endif

.PHONY: demo test test-slow test-lowest lint lines fuzz faults mutants bench bench-quick docs site clean

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

# The demo needs one extra only; with all of them installed, it uses them.
.venv/demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[plots]'
	touch $@

demo: $(or $(wildcard .venv/installed),.venv/demo)
	mkdir -p demo
	$(BIN)/saen compress threads --out demo/threads.saen --plot demo/levels.png
	$(BIN)/saen draw threads --graph 3 --figure decomposition --out demo/decomposition.svg
	$(BIN)/saen draw threads --graph 3 --figure compression --out demo/compression.svg
	$(BIN)/python examples/threads.py demo

test: .venv/installed
	$(BIN)/python -m pytest -q -n auto

test-slow: .venv/installed
	$(BIN)/python -m pytest -q -n auto --dist loadfile -m slow

fuzz: .venv/installed
	$(BIN)/python -m tests.fuzz --out docs/results/reliability/fuzz.json
	SAEN_FUZZ=2000 $(BIN)/python -m pytest -q -n auto --timeout 0 tests/io/test_fuzz.py tests/properties
	SAEN_FUZZ=200 $(BIN)/python -m pytest -q -n auto --timeout 0 tests/data tests/decompositions

faults: .venv/installed
	$(BIN)/python -m tests.faults.campaign --out docs/results/reliability
	$(BIN)/python -m tests.faults.interrupts --out docs/results/reliability

mutants: .venv/installed
	$(BIN)/python -m tests.mutants --out docs/results/reliability/mutants.json

# The oldest versions that pyproject.toml allows, torch excepted, in an environment of their own.
.venv-lowest/installed: pyproject.toml tests/lowest.py
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) tests/lowest.py > .venv-lowest/constraints.txt
	.venv-lowest/bin/pip install --quiet --constraint .venv-lowest/constraints.txt torch==2.13.0 \
	    --editable '.[plots,pyg,chem,text,parquet,explore]' hypothesis pytest pytest-timeout pytest-xdist
	touch $@

test-lowest: .venv-lowest/installed
	.venv-lowest/bin/python -m pytest -q -n auto -W ignore::DeprecationWarning $(or $(TESTS),tests)

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.rules
	$(BIN)/python -m tests.english
	$(BIN)/python tests/audit.py

lines: .venv/installed
	$(BIN)/python -m tests.lines

bench: .venv/installed
	$(BIN)/python -m benchmarks

bench-quick: .venv/installed
	$(BIN)/python -m benchmarks --quick

docs: .venv/installed
	$(BIN)/python docs/build.py

site: .venv/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf .venv .venv-lowest .fuzz .mutants demo site .pytest_cache .mypy_cache .ruff_cache .hypothesis

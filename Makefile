# Every target does its own set-up: Python 3.11 and make are all that a machine needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 2

.PHONY: help demo test lint types arch unit wheel bench vectors docs clean

help:            ## list the targets
	@grep -hE '^[a-z]+: .*##|^[a-z]+:  +##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip --quiet --disable-pip-version-check install --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip --quiet install --constraint constraints.txt --editable . --group dev
	@$(BIN)/python -m compileall -q cli ledger notary verify
	@touch $@

demo: $(STAMP)   ## record a real run, verify it, tamper with copies
	@$(BIN)/ledger demo

test: lint types arch unit wheel  ## everything that CI checks

lint: $(STAMP)   ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP)  ## mypy, strict
	@$(BIN)/mypy

arch: $(STAMP)   ## import contracts
	@$(BIN)/lint-imports

unit: $(STAMP)   ## pytest
	@$(BIN)/pytest -n $(JOBS) --dist worksteal -q

wheel: $(STAMP)  ## build the wheel and look inside
	@rm -rf dist && $(BIN)/python -m build --wheel --no-isolation --outdir dist . >/dev/null
	@$(BIN)/check-wheel-contents dist/*.whl

bench: $(STAMP)  ## figures: ours, the floor and the ratio from one run
	@$(BIN)/python tests/bench/bench_append.py
	@$(BIN)/python tests/bench/bench_verify.py
	@$(BIN)/python tests/bench/bench_prove.py
	@$(BIN)/python tests/bench/bench_notary.py

vectors: $(STAMP) ## write vectors/ anew from their printed seeds
	@$(BIN)/python vectors/generate.py

docs: $(STAMP)   ## write the generated pages of docs/ anew
	@$(BIN)/python docs/generate.py

clean:           ## remove what the targets made
	@rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

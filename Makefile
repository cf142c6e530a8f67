# `make help` lists what can be done.  Needs Python 3.11 or newer, and make.

PYTHON ?= python3
WORKERS ?= 2

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BUILD := .build
DEMO := $(BIN)/python -m remembrancer.composition.demo
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SOURCES := domain application adapters composition tests

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format types imports browser unit wheel bench simulate mutants crash \
	constraints clean

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

setup: $(READY) ## make .venv with everything in it; quick when up to date

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Python 3.11 or newer is needed; $(PYTHON) is $$( \
			($(PYTHON) --version) 2>/dev/null || echo not there). Try make PYTHON=python3.12" >&2; \
		exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) ..."
	@$(PIP) install --constraint constraints.txt --upgrade pip
	@$(PIP) install --constraint constraints.txt --group dev
	@$(PIP) install --constraint constraints.txt --no-build-isolation --editable '.[remote,guards,postgres,qdrant,report]'
	@touch $@

demo: setup ## see it remember, recall, correct, erase and replay
	@$(DEMO)

test: lint types imports wheel unit ## everything that must hold before a commit lands

lint: setup ## style
	@$(BIN)/ruff check --quiet $(SOURCES)
	@$(BIN)/ruff format --quiet --check $(SOURCES)

format: setup ## put the code into its format
	@$(BIN)/ruff check --quiet --fix $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

types: setup ## types
	@$(BIN)/mypy

imports: setup ## the rings' rules of dependency
	@$(BIN)/lint-imports --no-logo --no-cache

browser: setup ## the headless browser in which the report is tested, out of packages
	@$(BIN)/python -m tests.composition.report_browser

# Without a browser its few tests are skipped, and say so: an index of packages may be all there is.
unit: setup ## the tests alone
	@timeout 180 $(MAKE) --no-print-directory browser || echo "No browser: the report's page isn't tried in one."
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m "not slow"

# A wheel built from the sdist, as an index would get it, installed where there are no sources.
wheel: setup ## the built wheel, in a venv of its own
	@rm -rf $(BUILD)/dist $(BUILD)/wheel-check
	@mkdir -p $(BUILD)/wheel-check
	@$(BIN)/python -m build --no-isolation --outdir $(BUILD)/dist . >$(BUILD)/build.log 2>&1 \
		|| { cat $(BUILD)/build.log >&2; exit 1; }
	@test -x $(BUILD)/wheel-venv/bin/python || $(BIN)/python -m venv $(BUILD)/wheel-venv
	@$(BUILD)/wheel-venv/bin/python -m pip --disable-pip-version-check --quiet install \
		--constraint constraints.txt pytest hypothesis "$$(echo $(BUILD)/dist/*.whl)[postgres,qdrant]"
	@$(BUILD)/wheel-venv/bin/python -m pip --disable-pip-version-check --quiet install \
		--no-deps --force-reinstall $(BUILD)/dist/*.whl
	@cp tests/architecture/wheel_check.py $(BUILD)/wheel-check/test_wheel.py
	@cd $(BUILD)/wheel-check && REMEMBRANCER_SOURCES=$(CURDIR) \
		../wheel-venv/bin/python -m pytest -q -W error -p no:cacheprovider --rootdir . .

bench: setup ## the table of speeds in the README; takes some minutes
	@$(BIN)/python -m tests.benchmarks

simulate: setup ## simulated worlds until SECONDS= or COUNT=; prints the seed that fails
	@$(BIN)/python -m tests.simulation \
		$(if $(SECONDS),--seconds $(SECONDS)) $(if $(COUNT),--count $(COUNT)) \
		$(if $(FROM),--from $(FROM)) $(if $(SEED),--seed $(SEED))

mutants: setup ## rules broken on purpose, and the seed that catches each
	@$(BIN)/python -m tests.simulation.mutants

crash: setup ## all of the long simulations and crash runs; about half an hour
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m slow

constraints: ## pin what is installed in .venv now
	@$(BIN)/python -m pip --disable-pip-version-check freeze --all --exclude-editable \
		| grep -v -e ' @ ' -e '^setuptools==' >constraints.txt

clean: ## remove what was made, but not .venv
	@rm -rf $(BUILD) .demo dist .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# Each command does its own set-up: it creates .venv, installs what constraints.txt fixes, and does
# that again only after constraints.txt or pyproject.toml changed. Any active environment is ignored.
# Works with GNU Make 3.81 (macOS) and newer. Choose another Python with `make PYTHON=python3.12`.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --require-virtualenv
CORE := $(VENV)/.installed-core
DEV := $(VENV)/.installed-dev
LOCK_VENV := .venv-lock
LOCK_PIP := $(LOCK_VENV)/bin/python -m pip --disable-pip-version-check
PACKAGES := pipeline steps model kernels recipes
RUNTIME := steps/data/runtime_distributions.txt
FAST := not ray and not slow and not emulator and not browser

# `name==version` lines: public versions (2.13.0, not 2.13.0+cpu), without what venv itself brings.
FREEZE := freeze --all --exclude pip --exclude seaglass | sed -e 's/+[a-z0-9.]*$$//' | LC_ALL=C sort -f

unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH
export PYTHON

.PHONY: help quickstart test check lint format lock clean

help:  ## show this list
	@awk -F ':.*  ## ' '/^[a-z]+:.*  ## / { printf "  make %-12s%s\n", $$1, $$2 }' Makefile

quickstart: $(CORE)  ## set up, then run the main job; the second time everything is cached
	@$(BIN)/seaglass run recipes/quickstart.py

test: $(DEV)  ## set up, then run every test, those with Ray and services included
	$(BIN)/python -m pytest

check: lint  ## lint, then doctests and the fast tests: under 3 minutes
	$(BIN)/python -m pytest -m "$(FAST)"

lint: $(DEV)  ## format, ruff, mypy --strict and the import contracts
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(DEV)  ## format, and fix what ruff can fix
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

lock:  ## resolve everything anew into constraints.txt and the list of runtime distributions
	rm -rf $(LOCK_VENV)
	.ci/venv $(LOCK_VENV)
	$(LOCK_PIP) install --quiet .
	$(LOCK_PIP) freeze --exclude pip --exclude setuptools --exclude seaglass \
	    | sed -e 's/==.*//' | tr 'A-Z_.' 'a-z--' | LC_ALL=C sort > $(RUNTIME)
	$(LOCK_PIP) install --quiet '.[dev,s3]'
	$(LOCK_PIP) $(FREEZE) > constraints.txt
	rm -rf $(LOCK_VENV) build seaglass.egg-info

clean:  ## remove builds and the tools' caches; keep .venv and the store
	rm -rf build dist seaglass.egg-info .coverage .hypothesis .import_linter_cache
	rm -rf .mypy_cache .pytest_cache .ruff_cache
	find $(PACKAGES) tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(CORE): pyproject.toml constraints.txt .ci/venv
	@.ci/venv $(VENV)
	@echo "installing Seaglass into $(VENV); the first time takes some minutes"
	@$(PIP) install --quiet --constraint constraints.txt setuptools
	@$(PIP) install --quiet --constraint constraints.txt --no-build-isolation --editable .
	@touch $@

$(DEV): $(CORE)
	@echo "installing the tools for development into $(VENV)"
	@$(PIP) install --quiet --constraint constraints.txt --no-build-isolation --editable '.[dev,s3]'
	@touch $@

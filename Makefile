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
WORKERS := 2  # tests that start a Ray share one of them (tests/conftest.py)
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadscope

# From pip's report of what the core dependencies pull in, to names; without this project, what venv
# itself brings, and what only some builds of torch pull in.
define NAMES_OF_CORE
import json, re, sys
report = json.load(open(sys.argv[1]))
names = {re.sub("[-_.]+", "-", i["metadata"]["name"]).lower() for i in report["install"]}
names -= {"pip", "seaglass", "setuptools", "triton"}
print(*sorted(n for n in names if not n.startswith(("nvidia-", "cuda-"))), sep="\n")
endef
export NAMES_OF_CORE

unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH
export PYTHON

.PHONY: help quickstart test check lint format wheel lock clean

help:  ## show this list
	@awk -F ':.*  ## ' '/^[a-z]+:.*  ## / { printf "  make %-12s%s\n", $$1, $$2 }' Makefile

quickstart: $(CORE)  ## set up, then run the main job; the second time everything is cached
	@$(BIN)/seaglass run recipes/quickstart.py

test: $(DEV)  ## set up, then run every test, those with Ray and services included
	$(PYTEST)

check: lint  ## lint, then doctests and the fast tests: under 3 minutes
	$(PYTEST) -m "$(FAST)"

lint: $(DEV)  ## format, ruff, mypy --strict and the import contracts
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(DEV)  ## format, and fix what ruff can fix
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

wheel: $(CORE)  ## build dist/seaglass-*.whl
	@$(PIP) wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@rm -rf build
	@ls dist/seaglass-*.whl

lock:  ## resolve everything anew into constraints.txt and the runtime distributions
	rm -rf $(LOCK_VENV)
	.ci/venv $(LOCK_VENV)  # public versions (2.13.0, not 2.13.0+cpu), so that any machine can use it
	$(LOCK_PIP) install --quiet '.[dev,s3]'
	$(LOCK_PIP) freeze --all --exclude pip --exclude seaglass \
	    | sed -e 's/+[a-z0-9.]*$$//' | LC_ALL=C sort -f > constraints.txt
	$(LOCK_PIP) install --quiet --dry-run --ignore-installed --constraint constraints.txt \
	    --report $(LOCK_VENV)/core.json .
	$(LOCK_VENV)/bin/python -c "$$NAMES_OF_CORE" $(LOCK_VENV)/core.json > $(RUNTIME)
	rm -rf $(LOCK_VENV) build seaglass.egg-info

clean:  ## remove builds and the tools' caches; keep .venv and the store
	rm -rf build dist seaglass.egg-info .coverage .hypothesis .import_linter_cache
	rm -rf .mypy_cache .pytest_cache .ruff_cache
	find $(PACKAGES) tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(CORE): pyproject.toml constraints.txt .ci/venv
	@.ci/venv $(VENV)
	@echo "installing Seaglass into $(VENV); the first time takes some minutes"
	@$(PIP) install --quiet --constraint constraints.txt setuptools
	@$(PIP) install --constraint constraints.txt --no-build-isolation --editable .
	@touch $@

$(DEV): $(CORE)
	@echo "installing the tools for development into $(VENV)"
	@$(PIP) install --quiet --constraint constraints.txt --no-build-isolation --editable '.[dev,s3]'
	@touch $@

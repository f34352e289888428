# Two commands a newcomer needs: `make demo` and `make test`. `make help` lists the rest.

VENV := .venv
STAMP := $(VENV)/.installed
PYTHON ?= python3
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
WORKERS := $(shell if [ $(CORES) -lt 2 ]; then echo 2; else echo $(CORES); fi)
PYTEST := $(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal
ARGS ?=
SEEDS ?= 5

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast lint bench bench-peers bench-pipeline faults audit screenshots reference docs dist pins clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed: install it, or name it with 'make PYTHON=/path/to/python3'." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$$($(PYTHON) --version) is too old: Python 3.11 or newer is needed. Name one with 'make PYTHON=python3.11'." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "This Python cannot create virtual environments: on Debian and Ubuntu install python3-venv." >&2; exit 1; }
	@echo "Creating $(VENV) (once; a minute or so) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(STAMP) ## everything on this machine, from a private PostgreSQL to finished rows; ends by itself
	@$(VENV)/bin/scrapersky demo $(ARGS)

# Lint first, also under `make -j`: a typo should not cost a whole test run.
test: lint ## lint, then the whole test suite on throw-away PostgreSQL clusters
	@$(PYTEST) $(ARGS)

test-fast: $(STAMP) ## the tests that are not marked slow, in under a minute
	@$(PYTEST) -n $$((2 * $(WORKERS))) -m "not slow" $(ARGS)

lint: $(STAMP) ## ruff, mypy --strict, and the import contracts
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

bench: $(STAMP) ## benchmarks on a throw-away cluster; writes benchmarks/results/latest.json
	@$(VENV)/bin/python -m benchmarks $(ARGS)
	@$(VENV)/bin/python -m benchmarks.extraction

bench-peers: $(STAMP) ## ours beside procrastinate, pgqueuer, chancy, awa, dbos, dramatiq-pg, pgmq, graphile-worker, pg-boss
	@$(VENV)/bin/python -m benchmarks.peers $(ARGS)

bench-pipeline: $(STAMP) ## reading websites, ours beside Scrapy, extract-emails, ultimate-sitemap-parser and extruct
	@$(VENV)/bin/python -m benchmarks.pipeline $(ARGS)

faults: $(STAMP) ## every fault against real listeners, random mixes, and controls that must fail; SEEDS=20, ARGS=--soak
	@$(VENV)/bin/python -m tests.faults --seeds $(SEEDS) $(ARGS)

audit: $(STAMP) ## known weaknesses of the pinned libraries, asked of the public index: needs the internet
	@$(VENV)/bin/python -m pip install -q --disable-pip-version-check pip-audit
	@$(VENV)/bin/pip-audit --requirement deploy/listener/constraints.txt --disable-pip --no-deps

reference: $(STAMP) ## rewrite what docs/ takes from the program: SQL, settings, commands, the list of pages
	@$(VENV)/bin/python -m docs.reference

docs: reference ## the documentation as a site, in build/site
	@$(VENV)/bin/python -m pip install -q --disable-pip-version-check -e '.[docs]'
	@$(VENV)/bin/zensical build --strict
	@echo "Written: build/site/index.html"

dist: $(STAMP) ## the source archive and the wheel made of it, in dist/
	@$(VENV)/bin/python -m build --outdir dist .

pins: $(STAMP) ## the library versions of the image, as installed here
	@$(VENV)/bin/python deploy/listener/pins.py

screenshots: $(STAMP) ## the pages of docs/images/, taken in a real browser
	@$(VENV)/bin/python -m tests.browser.screenshots

clean: ## stop and remove the private PostgreSQL, then .venv, caches and build output
	@if [ -x $(VENV)/bin/scrapersky ] && [ -e .local/postgres ]; then $(VENV)/bin/scrapersky db destroy --yes; fi
	@rm -rf $(VENV) .local build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

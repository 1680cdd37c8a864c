# Everything a newcomer needs: `make serve` shows emceepee at work, `make test` proves it. Both set up what they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NODE_TOOLS := tests/node/node_modules/.installed
NODE_BIN := tests/node/node_modules/.bin
PAGE := src/emceepee/console
BROWSERS := chromium chromium-browser google-chrome google-chrome-stable

.PHONY: serve demo test matrix checks coverage eval simulate chaos soak screenshots bench bench-long bench-docs lint types imports page unit setup pins site programs \
	browser nginx haproxy redis tinyproxy promtool clean help

help:
	@echo "make serve        the proxy over HTTP on this machine, with something to try"
	@echo "make demo         a demonstration conversation over stdio"
	@echo "make test         lint, types, import contracts, and the tests of every behavior"
	@echo "make matrix       the cases that make test leaves out: clients, balancers, logins, long loads; and the coverage"
	@echo "make coverage     the branches that the quick tests take, in tests/output/coverage"
	@echo "make page         lint, types and unit tests of the console's page, without a browser"
	@echo "make bench        emceepee, other proxies and a bare relay on the same work; BENCH=--quick is short"
	@echo "make eval         how well codemode_search finds tools; DATA=folder has the sets of questions"
	@echo "make simulate     a thousand replicas and a million sessions on a fake clock; a tenth of them is lost at once"
	@echo "make chaos        two minutes of faults for three replicas and their Redis, and planted bugs that these find"
	@echo "make soak         the long tests: a thousand sessions, a hundred restarts, fifty kills and fifteen minutes of chaos"
	@echo "make site         the documentation as a site, in site"
	@echo "make screenshots  the picture of the console in the docs, taken anew"
	@echo "make setup        only install what they need"
	@echo "make programs     only the browser and the servers that the tests need; with sudo, unless they are there"
	@echo "make pins         pin what pyproject.toml asks for; PINS=--upgrade takes the newest versions"

# Nothing is installed whose hash is not in requirements.txt: not even what builds the package. The list is complete, so
# nothing is resolved: a newer version of what another asks for with an extra would be taken for one without a pin.
$(VENV)/.installed: pyproject.toml requirements.txt
	@echo "== setting up $(VENV)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# Hashes are of all files of a version, for all platforms. Versions stay, unless PINS=--upgrade or
# PINS='--upgrade-package NAME'; those of clients and peers are changed by hand.
PIN := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command "make pins"

pins: $(VENV)/.installed
	@echo "== pinning what is installed, with hashes"
	$(PIN) --extra dev --extra keyring --extra otel --extra semantic $(PINS) pyproject.toml -o requirements.txt
	$(PIN) -c requirements.txt pyproject.toml -o deploy/run.txt
	echo hatchling | $(PIN) -c requirements.txt - -o deploy/build.txt
	@for list in tests/clients/*.txt bench/peers/*.txt; do \
		sed -e '/--hash=/d' -e 's/ *\\$$//' $$list | $(PIN) --no-deps - -o $$list.new && mv $$list.new $$list || exit 1; \
	done

$(NODE_TOOLS): tests/node/package.json tests/node/package-lock.json
	@echo "== setting up the JavaScript servers and clients that the tests use"
	cd tests/node && npm install --no-save --no-audit --no-fund --loglevel=error
	@touch $@

# Clients and servers that cannot live in the same environment as the SDK that emceepee uses.
.tools/%/.installed: tests/clients/%.txt
	@echo "== setting up the clients in $<"
	$(PYTHON) -m venv .tools/$*
	.tools/$*/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

# What the benchmark compares with, and what it counts tokens with.
.tools/%/.installed: bench/peers/%.txt
	@echo "== setting up $* for the benchmark"
	$(PYTHON) -m venv .tools/$*
	.tools/$*/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

BENCH_TOOLS := $(VENV)/.installed .tools/fastmcp/.installed .tools/mcp-proxy/.installed .tools/tokens/.installed

# $(call install,PROGRAMS,PACKAGES,WHAT FOR): unless one of the programs is there, Debian's packages, if they may be put in.
# Servers lie where only root looks for programs.
define install
	@PATH="$$PATH:/usr/local/sbin:/usr/sbin"; \
	for name in $(1); do if command -v $$name >/dev/null; then exit 0; fi; done; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
		echo "$(3). Install it, so that one of these is found: $(1). On Debian, sudo make programs does it." >&2; \
		exit 1; \
	fi; \
	echo "== installing $(2)"; \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(2)
endef

# What the tests need of the system. All but this is installed below this directory.
programs: browser nginx haproxy redis tinyproxy promtool

browser:
	$(call install,$(BROWSERS),chromium fonts-dejavu-core,The console is tested in Chromium or Chrome)

nginx:
	$(call install,nginx,nginx,Replicas and examples are tested behind nginx)

haproxy:
	$(call install,haproxy,haproxy,Replicas and examples are tested behind HAProxy)

redis:
	$(call install,redis-server,redis-server,State that replicas share is tested on a real Redis)

tinyproxy:
	$(call install,tinyproxy,tinyproxy,Servers are reached through a real proxy)

promtool:
	$(call install,promtool,prometheus,Figures are checked by Prometheus's own tool)

TEST_TOOLS := $(VENV)/.installed $(NODE_TOOLS) .tools/mcp1/.installed .tools/agents/.installed .tools/tasks/.installed

setup: programs
	@$(MAKE) --no-print-directory -j 2 $(TEST_TOOLS)

serve: $(VENV)/.installed
	@echo "== emceepee over HTTP, with a demonstration server behind it"
	@$(BIN)/python examples/serve.py

demo: $(VENV)/.installed
	@echo "== a demonstration conversation with emceepee over stdio"
	@$(BIN)/python examples/conversation.py

lint: $(VENV)/.installed
	@echo "== lint"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/codespell src tests docs examples bench *.md

types: $(VENV)/.installed
	@echo "== types"
	@$(BIN)/mypy

imports: $(VENV)/.installed
	@echo "== import contracts"
	@$(BIN)/lint-imports --no-cache

page: $(NODE_TOOLS)
	@echo "== the console's page"
	@$(NODE_BIN)/eslint --config tests/node/eslint.config.js --max-warnings 0 $(PAGE)/page tests/page
	@$(NODE_BIN)/tsc --project $(PAGE)/jsconfig.json
	@node --disable-warning=ExperimentalWarning --test --test-reporter=dot tests/page/*.test.mjs

# Two at a time, the longest first. Each says what it has to say at its end, if this make can do that.
WHOLE := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

checks: types lint imports page

# The tests of a file share servers, so one worker runs them all. Files start in the order of their names: the last ones
# are short. Tests often wait for a process, so a small machine gets one worker more than it has cores.
WORKERS ?= 3
PARALLEL := $(BIN)/pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder
QUICK := tests/unit tests/contract tests/interaction
SLOW := $(addprefix --ignore=,$(QUICK))

unit: $(VENV)/.installed
	@$(PARALLEL) -m "not alone and not matrix" tests/unit tests/contract

test: setup
	@echo "== types, lint, import contracts and the console's page"
	@$(MAKE) --no-print-directory -j 2 $(WHOLE) checks
	@rm -f tests/output/figures.txt
	@echo "== tests of rules and conversations"
	@$(PARALLEL) -m "not alone and not matrix" $(QUICK)
	@echo "== tests of processes, the console, the package, and the docs"
	@$(PARALLEL) -m "not alone and not matrix" $(SLOW)
	@echo "== tests that run alone"
	@$(BIN)/pytest -q -m "alone and not matrix"

# Branch coverage doubles the time of the quick tests, so `make test` runs them without.
matrix: setup coverage
	@echo "== tests of the matrix"
	@$(PARALLEL) -m "matrix and not alone"
	@echo "== tests of the matrix that run alone"
	@$(BIN)/pytest -q -m "matrix and alone"

coverage: $(VENV)/.installed
	@echo "== quick tests, with the branches that they take in tests/output/coverage"
	@$(PARALLEL) -m "not alone and not matrix" $(QUICK) --cov --cov-report=html

chaos: $(VENV)/.installed
	@echo "== two minutes of faults for three replicas"
	@$(BIN)/pytest tests/process/replicas/test_planted_bugs.py tests/process/replicas/test_chaos.py

soak: $(VENV)/.installed
	@echo "== the long tests"
	@$(BIN)/pytest tests/soak/*.py

site: $(VENV)/.installed
	@echo "== the documentation, in site"
	@$(BIN)/mkdocs build --strict --clean

screenshots: setup
	@echo "== pictures of the console, in tests/output; one goes into the docs"
	@$(BIN)/pytest -q tests/console/test_every_view.py -k picture
	@mkdir -p docs/images
	@cp tests/output/waterfall-desktop-light.png docs/images/console.png

bench: $(BENCH_TOOLS)
	@echo "== the benchmark"
	@$(BIN)/python -m bench $(BENCH)

# DATA is the folder with the sets of questions, VECTORS a file of word vectors. Only the results are kept, in the docs.
DATA ?= eval-data
eval: $(VENV)/.installed .tools/bfcl/.installed
	@echo "== how well tools are found"
	@$(BIN)/python -m bench.eval $(DATA) --bfcl $$(echo .tools/bfcl/lib/python*/site-packages/bfcl_eval/data) \
		$(if $(VECTORS),--vectors $(VECTORS))

simulate: $(VENV)/.installed
	@echo "== the simulation"
	@$(BIN)/python -m bench.simulate $(SIMULATE)

bench-long: $(BENCH_TOOLS)
	@echo "== memory over a million calls"
	@$(BIN)/python -m bench --only long-run --long

bench-docs: $(BENCH_TOOLS)
	@echo "== the benchmark, into docs/benchmarks.md"
	@$(BIN)/python -m bench --long --write-docs

clean:
	rm -rf $(VENV) .tools tests/node/node_modules

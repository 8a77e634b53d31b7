# Two commands do everything: `make train` and `make test`. See README.md.
PYTHON ?= python3.11
TF_VERSION := $(shell sed -n 's/^tensorflow-cpu==\([0-9.]*\).*/\1/p' tests/requirements.txt)
HOROVOD_VERSION := 0.28.1
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/deepreduce-tf
RANKS ?= 2

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
export PATH := $(CURDIR)/.venv/bin:$(PATH)
.DEFAULT_GOAL := help
.NOTPARALLEL:  # a step uses all cores

STEP := python tools/step.py
QUIET := python tools/quiet.py
PIP := pip --disable-pip-version-check
CC_MAKE := $(MAKE) --no-print-directory -C deepreduce_tf/cc

.PHONY: help
help:
	@grep -E '^[a-z0-9-]+:.*##' Makefile | sed 's/:.*## /\t/'

.venv/bin/pip:
	@$(PYTHON) tools/step.py 'Python environment' -- $(PYTHON) -m venv .venv

# tf_keras, Keras 2, asks for the package `tensorflow`, which tensorflow-cpu replaces.
.venv/.tools: tests/requirements.txt | .venv/bin/pip
	@$(STEP) 'Python packages' --show '^(Collecting [^ ]+|Building wheel|Installing collected packages)' -- sh -ec ' \
	  $(PIP) install -r tests/requirements.txt; \
	  $(PIP) install --no-deps tf_keras==$(TF_VERSION)'
	@touch $@

# Horovod's wheel depends on the three versions in its folder's name; building it takes minutes, so it is kept outside the tree.
PYTHON_TAG = $(shell $(PYTHON) -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
HOROVOD_CACHE = $(CACHE)/horovod-$(HOROVOD_VERSION)-tensorflow-$(TF_VERSION)-$(PYTHON_TAG)-$(shell uname -m)

.venv/.horovod: .venv/.tools
	@$(STEP) 'Horovod' -- sh -ec ' \
	  tools/build_horovod.sh $(HOROVOD_VERSION) $(HOROVOD_CACHE); \
	  $(PIP) install --no-deps --force-reinstall $(HOROVOD_CACHE)/*.whl'
	@touch $@

# $(call build,name of the step,arguments for deepreduce_tf/cc/Makefile): the progress counts the files that a dry run would write.
build = $(STEP) $(1) --count ' -o [^ ]+(\.o|\.so|/cc_[a-z]+)$$' --total '$(CC_MAKE) -n $(2)' -- $(CC_MAKE) -j$(shell nproc) $(2)

.PHONY: ops
ops: .venv/.horovod
	@$(call build,'C++ ops',ops PYTHON=$(CURDIR)/.venv/bin/python TF_STAMP=$(CURDIR)/.venv/.horovod)

# Editable: the checkout itself is what the environment imports.
.venv/.package: .venv/.horovod setup.py pyproject.toml
	@SKIP_OPS=1 $(STEP) 'deepreduce-tf' -- $(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: ready
ready: ops .venv/.package

FASHION_MNIST := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/deepreduce-tf/fashion-mnist.npz
$(FASHION_MNIST): | ready
	@$(STEP) 'Fashion-MNIST' -- python models/data.py

.PHONY: train
train: ready $(FASHION_MNIST)  ## train ResNet-20 on Fashion-MNIST over two ranks; ARGS="--compression none", ARGS="--steps 20", ...
	@echo 'Training starts on $(RANKS) ranks'
	@$(QUIET) horovodrun -np $(RANKS) --gloo python models/train.py $(ARGS)

# `-k WORD` chooses among the C++ tests too; a longer choice is one of pytest alone. Few tests do not repay the start of more processes.
CHOICE := $(if $(filter -k,$(firstword $(ARGS))),$(wordlist 2,$(words $(ARGS)),$(ARGS)))
ONLY ?= $(if $(filter 1,$(words $(CHOICE))),$(CHOICE))

.PHONY: test
test: ready $(FASHION_MNIST) $(if $(filter 0 1,$(words $(CHOICE))),check)  ## all tests: C++ codecs under sanitizers, pytest, two ranks; ARGS="-k rice"
	@$(QUIET) python -m pytest tests $(if $(CHOICE),,-n 2 --dist worksteal) $(ARGS)

.PHONY: two-ranks
two-ranks: ready  ## one file of tests/two_ranks on two ranks: FILE=test_direct.py
	@TWO_RANKS_FILE=$(FILE) python -m pytest tests/test_two_ranks.py -k keras_3 $(ARGS)

.PHONY: check
check:  ## the C++ codecs under ASan and UBSan, without TensorFlow; ONLY=rice
	@$(call build,'C++ tests',$(CURDIR)/build/cc_tests)
	@$(CC_MAKE) -s check ONLY='$(ONLY)'

.PHONY: fuzz
fuzz:  ## every decoder on hostile bytes: make fuzz T=60 (seconds each)
	@$(call build,'C++ fuzzers',$(CURDIR)/build/cc_fuzz)
	@$(CC_MAKE) -s fuzz

.PHONY: bench
bench: ready  ## speed and size against the targets
	@$(QUIET) python benchmarks/bench.py $(ARGS)

.PHONY: figure8
figure8: ready $(FASHION_MNIST)  ## the paper's Figure 8 on real gradients: a table and build/figure8.png; ARGS="gradients.npz" to train nothing, ARGS="--output docs/figure8.png"
	@$(QUIET) python benchmarks/figure8.py $(ARGS)

.PHONY: lint
lint: .venv/.tools  ## ruff, mypy and clang-format
	ruff check .
	ruff format --check .
	mypy
	clang-format --dry-run --Werror $$(git ls-files '*.cc' '*.h')

.PHONY: format
format: .venv/.tools  ## rewrites what lint asks for
	ruff check --fix .
	ruff format .
	clang-format -i $$(git ls-files '*.cc' '*.h')

.PHONY: clean
clean:  ## removes what was built; the cache outside the tree stays
	rm -rf build .venv deepreduce_tf/_ops.so deepreduce_tf/_ops.tensorflow_version *.egg-info

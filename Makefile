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

.PHONY: help
help:
	@grep -E '^[a-z0-9-]+:.*##' Makefile | sed 's/:.*## /\t/'

.venv/.tools: tests/requirements.txt
	$(PYTHON) -m venv .venv
	pip install --quiet --disable-pip-version-check -r tests/requirements.txt
	pip install --quiet --disable-pip-version-check --no-deps tf_keras==$(TF_VERSION)  # Keras 2; it asks for the package `tensorflow`, which tensorflow-cpu replaces
	touch $@

# Horovod's wheel depends on the three versions in its folder's name; building it takes minutes, so it is kept outside the tree.
PYTHON_TAG = $(shell $(PYTHON) -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
HOROVOD_CACHE = $(CACHE)/horovod-$(HOROVOD_VERSION)-tensorflow-$(TF_VERSION)-$(PYTHON_TAG)-$(shell uname -m)

.venv/.horovod: .venv/.tools
	horovod_ext/build_horovod.sh $(HOROVOD_VERSION) $(HOROVOD_CACHE)
	pip install --quiet --disable-pip-version-check --no-deps --force-reinstall $(HOROVOD_CACHE)/*.whl
	touch $@

.PHONY: ops
ops: .venv/.horovod
	@$(MAKE) --no-print-directory -s -C deepreduce_tf/cc ops PYTHON=$(CURDIR)/.venv/bin/python TF_STAMP=$(CURDIR)/.venv/.horovod -j$(shell nproc)

# Editable: the checkout itself is what the environment imports.
.venv/.package: .venv/.horovod setup.py pyproject.toml
	SKIP_OPS=1 pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

.PHONY: ready
ready: ops .venv/.package

.PHONY: train
train: ready  ## train ResNet-20 on Fashion-MNIST over two ranks; ARGS="--compression none", ARGS="--steps 20", ...
	python models/data.py
	horovodrun -np $(RANKS) --gloo python models/train.py $(ARGS) | sed -u 's/^\[0\]<stdout>://'

.PHONY: test
test: ready check  ## all tests: C++ codecs under sanitizers, pytest, two ranks
	python models/data.py
	python -m pytest tests $(ARGS)

.PHONY: check
check:  ## the C++ codecs under ASan and UBSan, without TensorFlow
	@$(MAKE) --no-print-directory -s -C deepreduce_tf/cc check -j$(shell nproc)

.PHONY: fuzz
fuzz:  ## every decoder on hostile bytes: make fuzz T=60 (seconds each)
	@$(MAKE) --no-print-directory -s -C deepreduce_tf/cc fuzz -j$(shell nproc)

.PHONY: bench
bench: ready  ## speed and size against the targets
	python benchmarks/bench.py $(ARGS)

.PHONY: figure8
figure8: ready  ## the paper's Figure 8 on real gradients: a table and build/figure8.png; ARGS="gradients.npz" to train nothing, ARGS="--output docs/figure8.png"
	python models/data.py
	python benchmarks/figure8.py $(ARGS)

.PHONY: lint
lint: .venv/.tools  ## ruff and clang-format
	ruff check .
	ruff format --check .
	clang-format --dry-run --Werror $$(git ls-files '*.cc' '*.h')

.PHONY: format
format: .venv/.tools  ## rewrites what lint asks for
	ruff check --fix .
	ruff format .
	clang-format -i $$(git ls-files '*.cc' '*.h')

.PHONY: clean
clean:  ## removes what was built; the cache outside the tree stays
	rm -rf build .venv deepreduce_tf/_ops.so deepreduce_tf/_ops.tensorflow_version *.egg-info

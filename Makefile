# `make test` and `make train` need nothing but Python 3.10 to 3.12: they set up .venv on first use.
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Without an NVIDIA driver PyTorch's CPU build is enough; an index out of reach only makes pip warn.
CPU_INDEX := https://download.pytorch.org/whl/cpu
TORCH_INDEX ?= $(if $(shell command -v nvidia-smi),,$(CPU_INDEX))
PYTHON ?= python3
OBS ?= pointcloud
ARGS ?=

# Workers share the cores, so one thread each. EGL renders without a display, by GPU or software.
export OMP_NUM_THREADS ?= 1
export MUJOCO_GL ?= egl

.DEFAULT_GOAL := help
.PHONY: help setup train test quick lint format clean

help:
	@echo 'make setup    set up .venv and, where it may, system packages (the others do this by themselves)'
	@echo 'make train    train an agent; options: ARGS="--seed 1 --steps 20000"'
	@echo 'make test     check format, lint and types, then run the tests; options: TESTS=tests/shaping'
	@echo 'make quick    the same without the slow tests; options: TESTS=tests/shaping'
	@echo 'make lint     the checks alone'
	@echo 'make format   format the code and mend what ruff can mend'
	@echo 'make clean    remove .venv and caches'
	@echo 'Variables: PYTHON=python3.11; TORCH_INDEX=URL (empty: PyPI'"'"'s PyTorch, with CUDA); MUJOCO_GL=osmesa'

setup: $(READY)

$(READY): pyproject.toml constraints.txt tools/setup.sh
	PYTHON="$(PYTHON)" TORCH_INDEX="$(TORCH_INDEX)" tools/setup.sh $(VENV)
	@touch $@

train: $(READY)
	$(BIN)/python -m agents.train --obs $(OBS) $(ARGS)

lint: $(READY)
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/mypy

TESTS ?=
test: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=25 $(MARKED) $(TESTS)

quick: MARKED := -m "not slow"
quick: test

format: $(READY)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache *.egg-info

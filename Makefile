# The commands a person types. Everything else is CMake: presets in CMakePresets.json, targets in the rooms' CMakeLists.
#
#   CUDA=ON      fail where the CUDA parts cannot be compiled (AUTO leaves them out and says so, OFF leaves them out)
#   JOBS=n       compilers and tests at a time
SHELL := /bin/bash
JOBS ?= $(shell nproc)
CUDA ?= AUTO
PREFIX ?= /usr/local
export CUDA

.DEFAULT_GOAL := help
.PHONY: help demo test test-long setup-demo setup-test setup-long check check-targets format install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

deps_dir = $(if $(ISTHMUS_DEPS_DIR),$(abspath $(ISTHMUS_DEPS_DIR)))
# $(call configured,OPTIONS) configures build/, unless it is and was asked for the same.
configured = [ -f build/build.ninja ] && grep -qx 'ISTHMUS_CUDA:[A-Z]*=$(CUDA)' build/CMakeCache.txt && \
  grep -qx 'ISTHMUS_DEPS_DIR:[A-Z]*=$(deps_dir)' build/CMakeCache.txt || \
  cmake --preset release -DISTHMUS_CUDA=$(CUDA) -DISTHMUS_DEPS_DIR=$(deps_dir) $(1)

demo: setup-demo ## build, and run the stencil on 4 ranks; pictures in demo-out/
	@$(call configured,-DISTHMUS_TESTS=OFF)
	@cmake --build build -j $(JOBS) --target isthmus isthmus_program stencil2d
	@examples/stencil2d/demo.sh build

test: setup-test ## build, and run every check and test
	@JOBS=$(JOBS) tools/run_tests.sh quick

test-long: setup-long ## the same with longer stress, models at larger bounds, the sanitizers and the other compiler
	@JOBS=$(JOBS) tools/run_tests.sh long

check: setup-test ## rooms and budgets, MAP.md, format, linter
	@$(call configured)
	@cmake --build build -j $(JOBS) --target isthmus_commit
	@tools/check_all.sh build

check-targets: ## whether docs/measured/targets.json says what the records beside it do
	@python3 -B tools/record_measurements.py --check

format: setup-test ## rewrite sources in the project's format
	@tools/check_format.sh --fix

install: setup-demo ## install to PREFIX (default /usr/local)
	@$(call configured,-DISTHMUS_TESTS=OFF)
	@cmake --build build -j $(JOBS) --target isthmus isthmus_shmem isthmus_program
	@cmake --install build --prefix $(PREFIX)

clean: ## remove everything that was built (not .venv)
	@rm -rf build build-debug build-asan build-tsan build-tsan-threads build-clang build-coverage demo-out .setup

setup-demo setup-test setup-long: setup-%:
	@tools/setup.sh $*

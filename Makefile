# `make run` and `make test` work from a clean clone; `make help` lists the rest.
.DEFAULT_GOAL := help
ARGS ?=
PORT ?= 8080
export PORT
JOBS := $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)

.PHONY: help setup build run test test-asan test-tsan bench install clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup:
	@tools/setup

define configure_and_build
	@cmake --preset $(1) >build/$(1).log 2>&1 || { cat build/$(1).log; exit 1; }
	@cmake --build --preset $(1) -j $(JOBS) $(2)
endef

build: setup  ## build the release binary, build/release/linnet
	@mkdir -p build
	$(call configure_and_build,release,--target linnet)

run: build  ## fetch a small model, serve it, ask it a question; ARGS=--once stops after the answer, PORT=N
	@tools/run_demo $(ARGS)

test: setup  ## build and run every test
	@mkdir -p build
	$(call configure_and_build,release)
	@build/release/linnet get demo >/dev/null
	@build/release/linnet get demo-gemma >/dev/null
	@ctest --test-dir build/release --output-on-failure -j $(JOBS) $(ARGS)

test-asan: setup  ## the same under AddressSanitizer and UndefinedBehaviorSanitizer
	@mkdir -p build
	$(call configure_and_build,asan)
	@ctest --test-dir build/asan --output-on-failure $(ARGS)

test-tsan: setup  ## the same under ThreadSanitizer
	@mkdir -p build
	$(call configure_and_build,tsan)
	@ctest --test-dir build/tsan --output-on-failure $(ARGS)

bench: build  ## speed of the demo model beside what this machine allows
	@build/release/linnet get demo >/dev/null
	@build/release/linnet bench demo $(ARGS)

install: build  ## install the binary; PREFIX=/usr/local
	@cmake --install build/release --prefix $(or $(PREFIX),/usr/local)

clean:  ## remove everything built
	rm -rf build

# `make run` and `make test` work from a clean clone; `make help` lists the rest.
.DEFAULT_GOAL := help
ARGS ?=
FUZZ_SECONDS ?= 60
FUZZ_TARGETS := safetensors shard_index gguf config tokenizer
PORT ?= 8080
PREFIX ?= /usr/local
export PORT
JOBS := $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)

.PHONY: help setup build run test test-asan test-tsan fuzz bench bench-peers lint notice install clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup:  ## install what this machine lacks (called by the targets below)
	@tools/setup

define configure_and_build
	@mkdir -p build
	@cmake --preset $(1) >build/$(1).log 2>&1 || { cat build/$(1).log; exit 1; }
	@cmake --build --preset $(1) -j $(JOBS) $(2)
endef

define fetch_demo_models
	@$(1)/linnet get demo >/dev/null
	@$(1)/linnet get demo-gemma >/dev/null
endef

build: setup  ## build the release binary, build/release/linnet
	$(call configure_and_build,release,--target linnet)

run: build  ## serve a small model and ask it a question; ARGS=--once stops after the answer, PORT=N
	@tools/run_demo $(ARGS)

test: setup  ## build and run every test; ARGS=... goes to ctest
	$(call configure_and_build,release)
	$(call fetch_demo_models,build/release)
	@ctest --test-dir build/release --output-on-failure -j $(JOBS) $(ARGS)

test-asan: setup  ## the same under AddressSanitizer and UndefinedBehaviorSanitizer
	$(call configure_and_build,asan)
	$(call fetch_demo_models,build/asan)
	@ctest --test-dir build/asan --output-on-failure $(ARGS)

test-tsan: setup  ## the same under ThreadSanitizer
	$(call configure_and_build,tsan)
	$(call fetch_demo_models,build/tsan)
	@ctest --test-dir build/tsan --output-on-failure $(ARGS)

fuzz: setup  ## the readers of files under random bytes, FUZZ_SECONDS=60 each (clang)
	$(call configure_and_build,fuzz,--target linnet_fuzz)
	@build/fuzz/fuzz/linnet_fuzz_seeds build/fuzz/fuzz-seeds
	@for name in $(FUZZ_TARGETS); do \
	  echo "== $$name"; mkdir -p build/fuzz/corpus/$$name; \
	  build/fuzz/fuzz/linnet_fuzz_$$name -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
	    -print_final_stats=1 -artifact_prefix=build/fuzz/$$name- build/fuzz/corpus/$$name build/fuzz/fuzz-seeds/$$name || exit 1; \
	done

bench: build  ## speed of the demo model beside what this machine allows
	@build/release/linnet get demo >/dev/null
	@build/release/linnet bench demo $(ARGS)

bench-peers: setup  ## the same and served streams beside llama.cpp's strongest build, in turn (builds it first)
	$(call configure_and_build,bench,--target linnet --target serve_load)
	@build/bench/linnet get demo >/dev/null
	@bench/peers/build_llama_cpp.sh build/peers
	@bench/peers/compare.py build/bench/linnet build/peers/bin "$$(build/bench/linnet get demo 2>/dev/null)" \
	  --serve-load build/bench/bench/serve_load $(ARGS)

lint:  ## check format and names of the files changed since origin/main; ARGS=--all for every file
	@tools/lint $(ARGS)

notice:  ## write NOTICE anew, after rust/Cargo.lock changed
	@python3 tools/make_notice.py

install: setup  ## install the binary, the library and its CMake package; PREFIX=/usr/local
	$(call configure_and_build,release,--target linnet --target linnet_shared)
	@cmake --install build/release --prefix $(PREFIX)

clean:  ## remove everything built (.venv and fetched models stay)
	rm -rf build

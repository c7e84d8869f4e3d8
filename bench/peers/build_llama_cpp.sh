#!/usr/bin/env bash
# Builds llama-bench and llama-server for this machine, as fast as they get, from the source that llama-cpp-python's sdist ships.
# Usage: build_llama_cpp.sh DIR   -> DIR/bin/llama-bench, DIR/bin/llama-server   (4 to 12 minutes on 2 cores; nothing if they are there)
# clang matters: with g++ 12 the same source decodes 1.8 times slower, and its AMX kernels crash (prefill 3 to 5 times slower without).
set -euo pipefail
dir=$(realpath -m "${1:?usage: build_llama_cpp.sh DIR}")
version=0.3.36
[ -x "$dir/bin/llama-server" ] && exit 0
mkdir -p "$dir"
cd "$dir"
command -v clang++-16 >/dev/null || {
  echo "build_llama_cpp: needs clang 16 and its OpenMP: apt-get install clang-16 libomp-16-dev" >&2
  exit 1
}
python3 -m pip download -q --no-deps --no-binary :all: "llama-cpp-python==$version" -d sdist
tar xzf "sdist/llama_cpp_python-$version.tar.gz"
CC=clang-16 CXX=clang++-16 cmake -S "llama_cpp_python-$version/vendor/llama.cpp" -B build -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DGGML_NATIVE=ON -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_CURL=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_BUILD_WEBUI=OFF >cmake.log
ninja -C build llama-bench llama-server >ninja.log
ln -sfn build/bin bin

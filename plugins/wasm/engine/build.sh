#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh FOLDER: puts libgantry_wasm_engine.a and libgantry_wasm_compiler.a there. What
# was built once is taken out of $GANTRY_CACHE/wasm-engine by whoever builds the same.
# build.sh --check: only says what is missing for it.
set -euo pipefail
here="$(cd "$(dirname "$(readlink -f "$0")")" && pwd)"
. "$here/../../../tools/lib/rust.sh"

LIBRARIES=(libgantry_wasm_engine.a libgantry_wasm_compiler.a)

# One cargo for each: in one build the engine would have the compiler's features.
build_files() {
  local sources="$1" targets="$2" result="$3" release
  release="$(rust_triple)/release"
  cargo_build "$sources" "$targets/engine" gantry-wasm-engine s ""
  # Much of the compiler is code that was made by its build.
  cargo_build "$sources" "$targets/compiler" gantry-wasm-compiler 2 \
    "--remap-path-prefix=$targets=built"
  cp "$targets/engine/$release/${LIBRARIES[0]}" "$targets/compiler/$release/${LIBRARIES[1]}" \
    "$result/"
}

[ "$#" -eq 1 ] || {
  echo "usage: build.sh FOLDER|--check" >&2
  exit 2
}
if [ "$1" = --check ]; then
  rust_check "$here"
  exit
fi
rust_check "$here" >&2
rust_provide wasm-engine "$here" "$1" "${LIBRARIES[@]}"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh FOLDER: puts gantry-componentize there, which makes components of guests.
set -euo pipefail
here="$(cd "$(dirname "$(readlink -f "$0")")" && pwd)"
. "$here/../../../tools/lib/rust.sh"

build_files() {
  cargo_build "$1" "$2" gantry-componentize 1 ""
  cp "$2/$(rust_triple)/release/gantry-componentize" "$3/"
}

rust_check "$here" >&2
rust_provide wasm-componentize "$here" "$1" gantry-componentize

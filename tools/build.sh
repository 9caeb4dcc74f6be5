#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./run build [PRESET]: set-up and build, tests included where GoogleTest is
# part of the preset. The programs are in build/PRESET/bin.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
. "$GANTRY_ROOT/tools/lib/build.sh"

preset="${1:-release}"
parts=(build unit)
case "$preset" in
  release | debug | asan | tsan) ;;
  fuzz) parts+=(fuzz) ;;
  *) die "there is no preset '$preset': release, debug, asan, tsan, fuzz" ;;
esac
"$GANTRY_ROOT/tools/setup" "${parts[@]}"
build_preset "$preset"
say "built: $GANTRY_ROOT/build/$preset/bin"

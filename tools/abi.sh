#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/abi.sh [--record]: compares the layout of the plugin interface with
# the one recorded for its version, or records it. docs/abi.md says what to do.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
cd "$GANTRY_ROOT"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
version=$(sed -nE 's/.*kInterfaceVersion = ([0-9]+);.*/\1/p' core/include/gantry/plugin.h)
recorded="tools/abi/interface-$version"

# Sizes and virtual tables, as the compiler sees them and without addresses in its
# memory; then the declarations, without comments: names, order, values.
for header in core/include/gantry/*.h; do
  printf '#include <gantry/%s>\n' "$(basename "$header")"
done >"$folder/interface.cc"
(cd "$folder" && g++-14 -std=c++23 -I"$GANTRY_ROOT/core/include" \
  -fdump-lang-class=classes -fsyntax-only interface.cc)
{
  sed -E 's/ ?\((0x)+[0-9a-f]+\)//; s/ +$//' "$folder/classes" |
    awk '/^(Class|Vtable for) / { take = $0 ~ /^(Class|Vtable for) gantry::/ } take'
  for header in core/include/gantry/*.h; do
    printf '== %s\n' "$(basename "$header")"
    g++-14 -fpreprocessed -dD -E -P -x c++ "$header" 2>/dev/null | sed -E 's/ +/ /g; s/^ //; /^#include|^$/d'
  done
} >"$folder/now"
grep -q '^Vtable for gantry::Sandbox$' "$folder/now" || die "the compiler said nothing of the interface"

if [ "${1:-}" = --record ]; then
  mkdir -p tools/abi
  cp "$folder/now" "$recorded"
  say "recorded: $recorded"
  exit 0
fi
[ -e "$recorded" ] || die "nothing is recorded for interface version $version: tools/abi.sh --record"
diff -u "$recorded" "$folder/now" ||
  die "the plugin interface is not the one recorded as version $version: raise kInterfaceVersion where that one was released, then tools/abi.sh --record (docs/abi.md)"

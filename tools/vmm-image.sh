#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./run vmm-image [PREFIX]: makes kernel and initrd of the vmm backend's guests and puts them where
# the backend looks for them, PREFIX/libexec/gantry/plugins/vmm (/usr/local), or below
# $DESTDIR/PREFIX. The agent in it is this tree's.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
. "$GANTRY_ROOT/tools/lib/build.sh"
. "$GANTRY_ROOT/tools/lib/vmm_kernel.sh"

prefix="${1:-/usr/local}"
case "$prefix" in
  /*) ;;
  *) die "'$prefix' is not an absolute path" ;;
esac
out="${DESTDIR:-}$prefix/libexec/gantry/plugins/vmm"
"$GANTRY_ROOT/tools/setup" build vmm
build_preset release gantry-agent
agent=$(mktemp)
trap 'rm -f "$agent"' EXIT
strip -o "$agent" "$GANTRY_ROOT/build/release/bin/gantry-agent"
mkdir -p "$out"
step vmm-image "the guest image, in $out" \
  "$GANTRY_ROOT/tools/vmm/make-image" "$agent" "$VMM_KERNEL" "$out"
sed 's/^/  /' "$out/versions"

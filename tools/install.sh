#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./run install [PREFIX]: builds and installs below PREFIX (/usr/local), or
# below $DESTDIR/PREFIX.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
. "$GANTRY_ROOT/tools/lib/build.sh"

prefix="${1:-/usr/local}"
case "$prefix" in
  /*) ;;
  *) die "'$prefix' is not an absolute path" ;;
esac
"$GANTRY_ROOT/tools/setup" build kit
build_preset release installed
step install "install to ${DESTDIR:-}$prefix" \
  cmake --install "$GANTRY_ROOT/build/release" --prefix "$prefix"
say "installed to ${DESTDIR:-}$prefix:"
sed "s|^|  |" "$GANTRY_ROOT/build/release/install_manifest.txt"
say

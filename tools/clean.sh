#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./run clean: removes the folder build/. What set-up installed stays.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"

rm -rf "$GANTRY_ROOT/build"
say "removed $GANTRY_ROOT/build"

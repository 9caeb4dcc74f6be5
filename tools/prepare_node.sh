#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What tests with containers need beside their programs: the images, and on some machines
# cgroup controllers. ctest runs it before them; a second time there is nothing to do.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
. "$GANTRY_ROOT/tools/lib/images.sh"
. "$GANTRY_ROOT/tools/lib/cgroups.sh"

[ "$(id -u)" -ne 0 ] || claim_controllers
provide_images

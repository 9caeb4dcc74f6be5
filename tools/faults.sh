#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./run faults [RELEASE-OCI...]: every fault at every step (docs/faults.md), and 5,000
# lives, with the containerds and OCI runtimes named; 2.3.4-crun by default. Takes about
# an hour for each; of 2.3.4-vmm, take FaultVmm* alone without KVM. GANTRY_FAULT_FILTER: only
# these of the tests.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
. "$GANTRY_ROOT/tools/lib/build.sh"
. "$GANTRY_ROOT/tools/lib/images.sh"
. "$GANTRY_ROOT/tools/lib/vmm_image.sh"
. "$GANTRY_ROOT/tools/lib/cgroups.sh"

need_root faults
[ "$#" -gt 0 ] || set -- 2.3.4-crun
parts=(build unit e2e)
[[ " $* " != *-vmm\ * ]] || parts+=(vmm)
"$GANTRY_ROOT/tools/setup" "${parts[@]}"
claim_controllers
build_preset release
provide_images
[[ " $* " != *-vmm\ * ]] || provide_vmm_image
status=0
for pair in "$@"; do
  log="$LOG_DIR/faults-$pair.log"
  say "faults with $pair: $log"
  ENABLE_CRI_SANDBOXES=1 GANTRY_E2E_CONTAINERD="${pair%-*}" GANTRY_E2E_OCI="${pair##*-}" \
    GANTRY_CHURN_LIVES="${GANTRY_CHURN_LIVES:-5000}" \
    "$GANTRY_ROOT/build/release/tests/fault_tests" --gtest_color=no \
    --gtest_filter="${GANTRY_FAULT_FILTER:-*}" >"$log" 2>&1 </dev/null || status=1
  grep -aE '^\[ +(OK|FAILED|SKIPPED) +\]|^GANTRY_FAULT_SEED|points of operations|lives in' "$log"
done
exit "$status"

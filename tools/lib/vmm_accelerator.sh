# SPDX-License-Identifier: Apache-2.0
# What runs the guests of the suites with machines: KVM where a kernel boots in it, else QEMU's
# translation. It is found out once for all suites of a run, as the backend does, and said.

VMM_ACCELERATOR="$GANTRY_ROOT/build/release/tests/vmm-accelerator"

# choose_vmm_accelerator KERNEL: once in a run. Sets $GANTRY_VMM_ACCEL where the caller has not, and
# says what it is. Needs vmm_image_programs of the release build.
choose_vmm_accelerator() {
  local found why
  [ -z "${vmm_accelerator_said:-}" ] || return 0
  case "${GANTRY_VMM_ACCEL:-}" in
    kvm | tcg) why="GANTRY_VMM_ACCEL says so" ;;
    '')
      found=$("$VMM_ACCELERATOR" "$1") || return
      why="${found#* }"
      export GANTRY_VMM_ACCEL="${found%% *}"
      ;;
    *)
      say "GANTRY_VMM_ACCEL is '$GANTRY_VMM_ACCEL': kvm, tcg, or nothing for KVM where it works"
      return 1
      ;;
  esac
  vmm_accelerator_said=1
  say "  vmm: guests run with $GANTRY_VMM_ACCEL: $why"
}

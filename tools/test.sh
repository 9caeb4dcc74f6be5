#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./run test [-l | all | SUITE...]: sets up, builds, runs the suites and ends with one
# line `summary: N passed, N failed, N skipped`. The status is 0 when nothing
# failed; what failed once and passed when it was run again is told before, as flaky.
# Without arguments: those of $SUITES but for $ONLY_IN_ALL.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
. "$GANTRY_ROOT/tools/lib/suites.sh"
. "$GANTRY_ROOT/tools/lib/node_suite.sh"
. "$GANTRY_ROOT/tools/lib/private_containerd.sh"
. "$GANTRY_ROOT/tools/lib/kit.sh"
. "$GANTRY_ROOT/tools/lib/vmm_image.sh"
. "$GANTRY_ROOT/tools/lib/vmm_accelerator.sh"
. "$GANTRY_ROOT/tools/lib/cgroups.sh"

# In this order: the longest is not the last, and those of gVisor, of which each takes a
# processor, are spread.
SUITES=(style unit node packages vmm asan tsan fuzz
  e2e-2.3.4-gvisor contract kit contract-gvisor faults e2e-2.3.4-crun faults-gvisor e2e-2.3.4-runc
  contract-wasm faults-wasm e2e-2.3.4-wasm e2e-1.7.24-wasm
  contract-vmm kit-vmm e2e-2.3.4-vmm e2e-1.7.24-vmm e2e-2.3.4-vmm-smoke faults-vmm
  e2e-2.3.4-vmm-ch e2e-2.3.4-vmm-fc
  e2e-2.3.4-gvisor-controller e2e-2.3.4-wasm-controller e2e-2.3.4-vmm-controller
  e2e-2.3.4-gvisor-20240729 e2e-1.7.24-runc e2e-2.3.4-remote e2e-1.7.24-gvisor e2e-1.7.24-crun
  e2e-1.7.24-shim-crun e2e-1.6.20-crun e2e-2.0.14-runc e2e-2.1.9-runc e2e-2.2.9-runc e2e-2.4.2-runc)
# Each pairs anew what others have: 2.3.4 and its CRI server are in e2e-2.3.4-crun, runc and
# the newer CRI server of 1.7, with pods of the shim, in e2e-1.7.24-runc, gVisor in
# e2e-2.3.4-gvisor, processes without a pid on the host in `contract` and `kit`. Only the older
# runsc is nowhere else.
ONLY_IN_ALL=(packages vmm contract-vmm kit-vmm faults-vmm e2e-2.3.4-vmm e2e-1.7.24-vmm
  e2e-2.3.4-vmm-ch e2e-2.3.4-vmm-fc
  e2e-2.3.4-gvisor-controller e2e-2.3.4-wasm-controller e2e-2.3.4-vmm-controller
  e2e-1.6.20-crun e2e-2.0.14-runc e2e-2.2.9-runc e2e-2.4.2-runc e2e-2.3.4-runc e2e-2.3.4-gvisor-20240729 e2e-1.7.24-gvisor e2e-1.7.24-wasm
  e2e-1.7.24-shim-crun e2e-2.3.4-remote)
# What the suites with machines have, too.
NOT_IN_ALL=(e2e-2.3.4-vmm-smoke)
# One program may hang; the suite does not.
UNIT_SECONDS=300
CONTRACT_SECONDS=900
E2E_SECONDS=1800
FAULT_SECONDS=1200
VMM_SECONDS=2400
FUZZ_SECONDS="${GANTRY_FUZZ_SECONDS:-10}"

# among WORD WORD...: whether the first is one of the others.
among() {
  local word="$1" one
  shift
  for one in "$@"; do
    [ "$one" != "$word" ] || return 0
  done
  return 1
}

# chosen SUITE...: the suites that are meant by these arguments, one a line.
chosen() {
  local suite
  case "$#:${1:-}" in
    0:*)
      for suite in "${SUITES[@]}"; do
        among "$suite" "${ONLY_IN_ALL[@]}" || printf '%s\n' "$suite"
      done
      ;;
    1:all)
      for suite in "${SUITES[@]}"; do
        among "$suite" "${NOT_IN_ALL[@]}" || printf '%s\n' "$suite"
      done
      ;;
    *) printf '%s\n' "$@" ;;
  esac
}

# build_or_fail SUITE PRESET TARGET...: a build that fails is a failed test.
build_or_fail() {
  local suite="$1" preset="$2"
  shift 2
  build_preset "$preset" "$@" && return 0
  record_step "$suite" "build-$preset"
  return 1
}

# All unit programs of a preset.
unit_suite() {
  local suite="$1" preset="$2" programs
  build_or_fail "$suite" "$preset" unit_tests || return 0
  export ASAN_OPTIONS=detect_stack_use_after_return=1:abort_on_error=0
  export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
  # A test of the relay forks engines that it kills; each starts a thread.
  export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:suppressions="$GANTRY_ROOT/tests/tsan.supp"
  # The build names its programs: an earlier one may have left others.
  mapfile -t programs <"$GANTRY_ROOT/build/$preset/tests/programs"
  run_gtests "$suite" "$UNIT_SECONDS" "${programs[@]}"
}

style_suite() {
  local check FAILED_STEP
  if "$GANTRY_ROOT/tools/check.sh" --no-setup; then
    record passed style check
    return 0
  fi
  while read -r check; do
    FAILED_STEP="$LOG_DIR/$check.log"
    record_step style "$check"
  done <"$LOG_DIR/check-failed"
}

# run_fuzz PROGRAM: the seeds, then what comes of them for a while. Inputs that
# reached something new are kept in the build folder for the next run.
run_fuzz() {
  local name log status=0 found="$GANTRY_ROOT/build/fuzz/corpus" seeds="$GANTRY_ROOT/tests/fuzz/corpus"
  name=$(basename "$1")
  log="$LOG_DIR/suite-fuzz-$name.log"
  mkdir -p "$found/$name"
  timeout -k 20 $((FUZZ_SECONDS + 120)) "$1" -max_total_time="$FUZZ_SECONDS" \
    -runs="${GANTRY_FUZZ_RUNS:-2000000}" -timeout=20 -rss_limit_mb=2048 \
    -artifact_prefix="$GANTRY_ROOT/build/fuzz/$name-" "$found/$name" "$seeds/$name" \
    >"$log" 2>&1 </dev/null || status=$?
  if [ "$status" -eq 0 ]; then
    record passed fuzz "$name"
  else
    record failed fuzz "$name"
    show_end "$log" | tell_failed fuzz "$name ended with status $status" "$log"
  fi
}

fuzz_suite() {
  local program
  build_or_fail fuzz fuzz fuzz_targets || return 0
  while read -r program; do
    wait_for_turn 2
    run_fuzz "$program" &
  done <"$GANTRY_ROOT/build/fuzz/tests/programs"
  wait
}

# Keeper and engine as built, without a containerd. contract_suite SUITE [BACKEND]
contract_suite() {
  GANTRY_CONTRACT_BACKENDS="${2:-}" \
    run_gtest "$1" "$GANTRY_ROOT/build/release/tests/contract_tests" \
    "$LOG_DIR/suite-$1.log" "$CONTRACT_SECONDS" --gtest_color=no --gtest_filter="*${2:+/$2}"
}

# e2e_suite SUITE, named e2e-RELEASE-OCI, or -gvisor[-RUNSC] for that backend. The newest
# release with crun has all tests, the others those that could differ. containerd 1.7 has
# two CRI servers: the runs with runc and gvisor have the newer one, that with crun the
# other, and e2e-RELEASE-shim-OCI what only the newer one can, pods that the shim makes.
e2e_suite() {
  local suite="$1" rest="${1#e2e-}" filter='-CtrScale.*' newer='' runsc='' hypervisor=''
  case "$rest" in
    # What a sandbox controller makes of a pod is seen with crun; here whether each backend has it.
    *-controller) rest="${rest%-*}" filter='*/controller:*CriStreaming*' ;;
    *-gvisor-*)
      runsc="${rest##*-}" rest="${rest%-*}"
      filter='CtrRun.*:CtrExec.*:CtrTerminal.*:EngineKill*:CtrRestart.*:*CriPod.*:*Gvisor*'
      ;;
    2.3.4-gvisor)
      filter='-CtrScale.*:*/controller'
      [ -n "$whole" ] || filter='CtrRun.*:CtrExec.*:CtrTerminal.*:EngineKill*:CtrRestart.*:*CriPod.*:CriShimPod.*:CriForward.*:*Gvisor*-*/controller'
      ;;
    2.3.4-wasm) filter='CtrRun.*:CtrExec.*:CtrTerminal.*:EngineKill*:CtrRestart.*:*CriPod.*:CriShimPod.*:*Wasm*:ShimCalls.*:CtlCalls.*-*/controller' ;;
    # By the doubles of these hypervisors. Firecracker has no virtiofs, so no volumes of files.
    2.3.4-vmm-ch)
      hypervisor=cloud-hypervisor rest="${rest%-*}"
      filter='CtrTerminal.*:VmmRun.*:VmmStreams.*:VmmEnds.*:VmmRestart.*:VmmVolume.*:*VmmPod.*:*VmmNetwork.*'
      ;;
    2.3.4-vmm-fc)
      hypervisor=firecracker rest="${rest%-*}"
      filter='VmmRun.*:VmmStreams.*:VmmEnds.*:VmmRestart.*:*VmmPod.IsOneMachine*:*VmmNetwork.*'
      ;;
    1.*-gvisor) newer=1 filter='CtrRun.*:CtrExec.*:CtrTerminal.*:EngineKill*:CtrRestart.*:*Cri*' ;;
    1.*-wasm)
      newer=1 filter='CtrRun.*:CtrExec.*:CtrTerminal.*:EngineKill*:CtrRestart.*:*Cri*:*Wasm*'
      export GANTRY_E2E_SCALE="${GANTRY_E2E_SCALE:-1000}"
      ;;
    # A machine without KVM takes seconds to boot: what each backend has, and what is its own.
    *-vmm-smoke)
      rest="${rest%-smoke}" newer=1
      filter='VmmRun.HasAKernelOfItsOwn:VmmRun.KeepsItsStreamsApart:CtrExec.PassesTheExitCodeOn:VmmEnds.OfTheVmmAre*:*VmmPod.SharesItsNetwork*/shim'
      ;;
    2.3.4-vmm) filter='CtrRun.*:CtrExec.*:CtrTerminal.*:EngineKill*:CtrRestart.*:*CriPod.*:CriShimPod.*:*Vmm*' ;;
    1.*-vmm) newer=1 filter='CtrRun.*:CtrExec.*:*CriPod.*:*Vmm*' ;;
    2.3.4-crun) filter='*' ;;
    1.6.* | 2.1.*) filter='CtrRun.*:CtrExec.*:CtrTerminal.*:CtrEvents.*:EngineKill*:*CriPod.*' ;;
    2.[024].*)
      filter='CtrRun.*:CtrExec.*:CtrTerminal.*:CtrEvents.*:EngineKill*:*CriPod.*:*CriResources.*:*/controller'
      filter+=':*CriStreaming*/controller*'
      ;;
    1.*-shim-*) newer=1 filter='*Cri*/shim:CriShimPod.*' ;;
    1.*-crun) filter='*Cri*' ;;
    1.*-runc)
      newer=1
      [ -n "$whole" ] || filter='CtrRun.*:CtrExec.*:CtrTerminal.*:CtrRestart.*:CtrEvents.*:EngineKill*:*Cri*'
      ;;
  esac
  ENABLE_CRI_SANDBOXES="$newer" GANTRY_E2E_CONTAINERD="${rest%%-*}" GANTRY_E2E_OCI="${rest##*-}" \
    GANTRY_E2E_RUNSC="$runsc" GANTRY_VMM_HYPERVISOR="$hypervisor" \
    run_gtest "$suite" "$GANTRY_ROOT/build/release/tests/e2e_tests" \
    "$LOG_DIR/suite-$suite.log" "$E2E_SECONDS" --gtest_color=no \
    --gtest_filter="${GANTRY_E2E_FILTER:-$filter}"
}

# A sample of what ./run faults does, the same each time: what it finds shall be of a
# change. faults_suite SUITE EVERY [OCI [FILTER]]
faults_suite() {
  ENABLE_CRI_SANDBOXES=1 GANTRY_FAULT_EVERY="${GANTRY_FAULT_EVERY:-$2}" \
    GANTRY_FAULT_SEED="${GANTRY_FAULT_SEED:-1}" GANTRY_E2E_OCI="${3:-}" \
    run_gtest "$1" "$GANTRY_ROOT/build/release/tests/fault_tests" \
    "$LOG_DIR/suite-$1.log" "$FAULT_SECONDS" --gtest_color=no --gtest_filter="${4:-*}"
}

# Machines of QEMU's, with the guest image of this build.
vmm_suite() {
  local program programs=(vmm_agent_tests vmm_hypervisor_tests vmm_machine_tests
    vmm_maker_tests vmm_network_tests vmm_storage_tests vmm_template_tests vmm_vsock_tests)
  build_or_fail vmm release vmm_image_programs "${programs[@]}" || return 0
  if ! provide_vmm_image || ! choose_vmm_accelerator "$VMM_IMAGE/kernel"; then
    record_step vmm image
    return 0
  fi
  for program in "${programs[@]}"; do
    run_gtest vmm "$GANTRY_ROOT/build/release/tests/$program" "$LOG_DIR/suite-$program.log" \
      "$VMM_SECONDS" --gtest_color=no
  done
}

# start_node: the suite that takes longest, beside those that build, which wait for its
# guest and not the other way round. Not a job of this shell, which waits for all of those.
start_node() {
  run_suite node &
  node_pid=$!
  disown
  renice -n 10 "$$" >/dev/null || true
}

# Three at a time: each has a gantry of its own, and they wait a lot. For what containerd and
# the tests wait, the machine is as much slower.
suites_of_nodes() {
  local suite release ready=()
  [ "$#" -eq 1 ] || export GANTRY_TEST_SLOWNESS="${GANTRY_TEST_SLOWNESS:-3}"
  # What one of them lacks is not the others' failure: not every Debian has each containerd.
  for suite in "$@"; do
    release="$(sed -n 's/^e2e-\([0-9.]*\)-.*/\1/p' <<<"$suite")"
    if [ -z "$release" ] || provide_containerds "$release"; then
      ready+=("$suite")
    else
      record_step "$suite" containerd
    fi
  done
  [ "${#ready[@]}" -gt 0 ] || return 0
  set -- "${ready[@]}"
  if ! build_or_fail "$1" release; then
    return 0
  fi
  if ! provide_images; then
    record_step "$1" images
    return 0
  fi
  if printf '%s\n' "$@" | grep -q -- '-vmm'; then
    if ! provide_vmm_image || ! choose_vmm_accelerator "$VMM_IMAGE/kernel"; then
      record_step "$1" vmm-image
      return 0
    fi
  fi
  for suite in "$@"; do
    wait_for_turn 3
    run_suite "$suite" &
  done
  wait
}

run_suite() {
  local begin
  begin=$(date +%s)
  case "$1" in
    style) style_suite ;;
    unit) unit_suite unit release ;;
    asan) unit_suite asan asan ;;
    tsan) unit_suite tsan tsan ;;
    fuzz) fuzz_suite ;;
    contract) contract_suite contract ;;
    contract-vmm) CONTRACT_SECONDS=$((CONTRACT_SECONDS * 8)) contract_suite "$1" vmm ;;
    contract-*) contract_suite "$1" "${1#contract-}" ;;
    kit) kit_suite ;;
    kit-vmm) kit_vmm_suite ;;
    e2e-*-vmm*) E2E_SECONDS=$((E2E_SECONDS * 4)) e2e_suite "$1" ;;
    e2e-*) e2e_suite "$1" ;;
    faults) faults_suite faults 16 ;;
    faults-gvisor) faults_suite faults-gvisor "$([ -n "$whole" ] && echo 32 || echo 64)" gvisor ;;
    # Of native containers `faults` has the same steps.
    faults-wasm) faults_suite faults-wasm 16 wasm 'FaultWasm.*' ;;
    # The same; and a machine without KVM takes seconds to boot.
    faults-vmm) FAULT_SECONDS=$((FAULT_SECONDS * 2)) faults_suite faults-vmm 24 vmm 'FaultVmm*' ;;
    node) node_suite ${whole:-sample} ;;
    packages) packages_suite ;;
    vmm) vmm_suite ;;
  esac
  demand_a_pass "$1"
  suite_line "$1" $(($(date +%s) - begin))
}

if [ "${1:-}" = -l ]; then
  printf '%s\n' "${SUITES[@]}"
  exit 0
fi
# Without arguments what other suites show as well is left out of some.
whole=
[ "$#" -eq 0 ] || whole=whole
mapfile -t suites < <(chosen "$@")
set -- "${suites[@]}"
for suite in "$@"; do
  among "$suite" "${SUITES[@]}" ||
    die "there is no suite '$suite'; 'all' alone, or of these: ${SUITES[*]}"
done

begin_results
parts=(build unit)
for suite in "$@"; do
  case "$suite" in
    style) parts+=(check) ;;
    fuzz) parts+=(fuzz) ;;
    contract-vmm | kit-vmm | faults-vmm | e2e-*-vmm*) parts+=(e2e vmm) ;;
    contract* | kit | faults* | e2e-*) parts+=(e2e) ;;
    packages) parts+=(node packages) ;;
    node | vmm) parts+=("$suite") ;;
  esac
done
mapfile -t parts < <(printf '%s\n' "${parts[@]}" | sort -u)
"$GANTRY_ROOT/tools/setup" "${parts[@]}"
[ "$(id -u)" -ne 0 ] || claim_controllers
nodes=()
node_pid=
for suite in "$@"; do
  case "$suite" in
    contract* | kit* | faults* | e2e-*) nodes+=("$suite") ;;
    node) start_node ;;
    *) run_suite "$suite" ;;
  esac
done
renice -n 0 "$$" >/dev/null 2>&1 || true
[ "${#nodes[@]}" -eq 0 ] || suites_of_nodes "${nodes[@]}"
[ -z "$node_pid" ] || tail --pid="$node_pid" -f /dev/null

summary

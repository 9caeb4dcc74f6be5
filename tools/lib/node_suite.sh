# SPDX-License-Identifier: Apache-2.0
# The suites `node` and `packages`: boots of the guest, and what its tests have said. And the
# guest's part of the benchmark.
. "$GANTRY_ROOT/tools/lib/build.sh"
. "$GANTRY_ROOT/tools/lib/images.sh"
. "$GANTRY_ROOT/tools/lib/containerds.sh"
. "$GANTRY_ROOT/tools/lib/guest.sh"
. "$GANTRY_ROOT/tools/lib/packages.sh"

# The guest may hang; the suite does not.
NODE_BOOT_SECONDS=3000
# Which of its programs run, a regular expression: for work on one of them.
NODE_ONLY="${GANTRY_NODE_ONLY:-.*}"
# Of a sample, where the guest is many times slower: what with crun is there as well.
NODE_SAMPLE='unit-.*|node-.*|e2e-crun|.*-reboot-.*'
NODE_RUNS=(unit-rootfs unit-make unit-init node-wasm e2e-wasm
  node-crun e2e-crun before-reboot-crun node-runc e2e-runc before-reboot-runc after-reboot-crun after-reboot-runc)

# node_wants RUN...: whether one of them is to be run.
node_wants() {
  local run
  for run in "$@"; do
    [[ ! "$run" =~ ^($NODE_ONLY)$ ]] || return 0
  done
  return 1
}

provide_guest() {
  build_preset release && provide_images && provide_guest_base &&
    step guest-image "the guest's disk with gantry installed" "$GANTRY_ROOT/tools/node/make-image" &&
    guest_choose_accelerator
}

# boot_for_tests SUITE WHICH: a boot that does not end by itself is one failed test, and
# what the guest wrote until then is made readable.
boot_for_tests() {
  local suite="$1" which="$2" console="$LOG_DIR/guest-$2.log" status=0
  guest_command "gantry.tests=$which" "gantry.only=$NODE_ONLY" \
    ${GANTRY_E2E_FILTER:+"gantry.e2e_filter=$GANTRY_E2E_FILTER"}
  timeout -k 20 "$NODE_BOOT_SECONDS" "${GUEST_COMMAND[@]}" >"$console" 2>&1 </dev/null || status=$?
  [ "$status" -ne 0 ] || ! grep -q "the $which boot is done" "$console" || return 0
  show_end "$console" | tell_failed "$suite" "the $which boot ended with status $status" "$console"
  e2fsck -fy "$GUEST_IMAGE" >/dev/null 2>&1 || true
  record failed "$suite" "$which-boot"
}

# take_results SUITE BOOTS RUN...: each program's log out of the image, counted as the suite's.
take_results() {
  local suite="$1" boots="$2" run log boot
  shift 2
  for run in "$@"; do
    [[ "$run" =~ ^($NODE_ONLY)$ ]] || continue
    log="$LOG_DIR/suite-$suite-$run.log"
    if ! guest_file "/var/log/gantry-tests/$run.log" "$log"; then
      record failed "$suite" "$run-did-not-run"
      continue
    fi
    count_gtest "$suite" "$run" "$log"
  done
  for boot in $boots; do
    take_logs "$boot"
  done
}

take_logs() {
  local log
  for log in {journal,engine}-"$1"; do
    guest_file "/var/log/gantry-tests/$log.log" "$LOG_DIR/guest-$log.log" || true
  done
}

# node_suite [sample]: the tests of containers and pods by each backend and OCI runtime; of a
# sample, without KVM, by one.
node_suite() {
  if ! provide_guest; then
    record_step node guest
    return 0
  fi
  if [ "${1:-}" = sample ] && [ "$NODE_ONLY" = '.*' ] && ! guest_has_kvm; then
    NODE_ONLY="$NODE_SAMPLE"
  fi
  boot_for_tests node first
  boot_for_tests node second
  take_results node "first second" "${NODE_RUNS[@]}"
}

# packages_suite: one boot of a guest on which gantry's Debian packages are installed, upgraded and
# removed.
packages_suite() {
  local GUEST_IMAGE="$GANTRY_ROOT/build/node/packages.img"
  export GUEST_IMAGE
  if ! provide_packages || ! build_preset release node_tests || ! provide_images || ! provide_guest_base ||
    ! step packages-image "the guest's disk with gantry's packages" "$GANTRY_ROOT/tools/node/make-image" packages ||
    ! guest_choose_accelerator; then
    record_step packages guest
    return 0
  fi
  boot_for_tests packages packages
  take_results packages packages packages
}

# What of ./run bench needs such a node.
NODE_ROWS=(update-systemd)

# node_bench [ROW...]: one boot, in which these rows are measured. Prints the table and
# leaves it in build/bench-node.txt, the rows in build/bench-node.json.
node_bench() {
  local console="$LOG_DIR/guest-bench.log" out="$GANTRY_ROOT/build" rows status=0
  [ "$#" -gt 0 ] || set -- "${NODE_ROWS[@]}"
  provide_guest || return
  rows=$(IFS=, && echo "$*")
  guest_command gantry.tests=bench "gantry.rows=$rows" \
    ${GANTRY_BENCH_ROUNDS:+"gantry.rounds=$GANTRY_BENCH_ROUNDS"}
  say "measuring in the guest; its console is in $console"
  timeout -k 20 "$NODE_BOOT_SECONDS" "${GUEST_COMMAND[@]}" >"$console" 2>&1 </dev/null || status=$?
  if [ "$status" -ne 0 ]; then
    e2fsck -fy "$GUEST_IMAGE" >/dev/null 2>&1 || true
  fi
  guest_file /var/log/gantry-tests/journal-bench.log "$LOG_DIR/guest-journal-bench.log" || true
  if ! guest_file /var/log/gantry-tests/bench.log "$out/bench-node.txt"; then
    show_end "$console"
    die "the guest measured nothing: its boot ended with status $status; its console is in $console"
  fi
  cat "$out/bench-node.txt"
  if ! guest_file /var/log/gantry-tests/bench.status "$LOG_DIR/guest-bench.status" ||
    [ "$(cat "$LOG_DIR/guest-bench.status")" != 0 ] ||
    ! guest_file /var/log/gantry-tests/bench.json "$out/bench-node.json"; then
    die "not all of it was measured; the guest's console is in $console"
  fi
}

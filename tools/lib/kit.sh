# SPDX-License-Identifier: Apache-2.0
# The suite `kit`: gantry installed below a temporary prefix, and with nothing of
# the tree but its examples what docs/writing-a-backend.md says, the rules of the
# interface against three backends, against one with a fault (tests/contract/faulty),
# and the example under containerd.

KIT_SECONDS=400
# Of what the results are.
KIT_SUITE=kit

# kit_log NAME: where its output is, and its results beside it.
kit_log() { echo "$LOG_DIR/suite-kit-$1.log"; }

# kit_run NAME COMMAND...: a test of the suite, whose result is left beside its log.
kit_run() {
  local log kind=passed
  log=$(kit_log "$1")
  "${@:2}" >"$log" 2>&1 </dev/null || kind=failed
  echo "$kind $KIT_SUITE $1" >"$log.results"
  [ "$kind" = passed ]
}

# kit_step NAME COMMAND...: a test that others need. It installs or builds, and is not run
# again.
kit_step() {
  local status=0
  kit_run "$@" || status=1
  kit_count "$1"
  return "$status"
}

# kit_count NAME: takes what it left into the results, and says what failed.
kit_count() {
  local log
  log=$(kit_log "$1")
  ! grep -q '^failed' "$log.results" ||
    kit_show "$log" | tell_failed "$KIT_SUITE" "$1 failed" "$log"
  ! grep -q '^flaky' "$log.results" ||
    kit_show "$log" | tell_flaky "$KIT_SUITE" "$1 failed, and passed when run again" "$log"
  take_lines "$log.results"
}

# kit_show LOG: the rules that are not met, or the end of what has none.
kit_show() {
  if grep -q ' is not met:$' "$1"; then
    awk '/ is not met:$/ { show = 1 } show && n++ < 60 { print "      " $0 }' "$1"
  else
    show_end "$1"
  fi
}

# kit_again NAME...: the second run of what failed, alone; its output is in LOG.again. The
# rule is run_gtest's: docs/flaky.md.
kit_again() {
  local name test log failed=()
  for name in "$@"; do
    mapfile -t -O "${#failed[@]}" failed < <(awk -v name="$name" \
      '$1 == "failed" && $3 !~ /\(/ { print name, $3 }' "$(kit_log "$name").results")
  done
  [ "${#failed[@]}" -le "$GTEST_MOST_AGAIN" ] || return 0
  for test in ${failed[@]+"${failed[@]}"}; do
    log=$(kit_log "${test% *}")
    kit_passes "${test#* }" >>"$log.again" 2>&1 </dev/null || continue
    awk -v test="${test#* }" '$3 == test { $1 = "flaky" } { print }' "$log.results" >"$log.results.new"
    mv "$log.results.new" "$log.results"
  done
}

# kit_passes TEST: runs one alone, `words`, `maker`, `containerd`, `vmm-panics`, fault-FAULT-RULE or
# BACKEND:RULE.
kit_passes() {
  local said status=0 fault rule what
  case "$1" in
    words | maker | containerd | vmm-panics)
      "kit_${1//-/_}"
      return
      ;;
    fault-*)
      read -r fault rule what < <(kit_faults_table | awk -v test="$1" '"fault-" $1 "-" $2 == test')
      kit_fault "$fault" "$rule" "$what"
      return
      ;;
  esac
  said=$(kit_backend_test "${1%%:*}" --rule "${1#*:}") || status=$?
  printf '%s\n' "$said"
  [ "$status" -eq 0 ] && grep -qE "^${1#*:} +met$" <<<"$said"
}

# The shell commands of the guide, as one script.
kit_guide() {
  mkdir -p "$KIT/guide"
  awk '/^```sh$/ { take = 1; next } /^```$/ { take = 0 } take' \
    "$GANTRY_ROOT/docs/writing-a-backend.md" >"$KIT/guide.sh"
  [ -s "$KIT/guide.sh" ] &&
    PREFIX="$KIT/usr" WORK="$KIT/guide" EXAMPLES="$GANTRY_ROOT/examples" \
      timeout -k 20 "$KIT_SECONDS" bash -euxo pipefail "$KIT/guide.sh" &&
    "$KIT/usr/bin/gantryctl" check "$KIT/guide/gantry.yaml" | grep -Eq '^plain +plain +\{\} +yes'
}

# A program of somebody else's that makes containers, with what is installed alone.
kit_maker() (
  bundle="$KIT/bundle" status=0
  mkdir -p "$bundle"/rootfs/{bin,proc} || exit 1
  cp "$(command -v busybox)" "$bundle/rootfs/bin/busybox" || exit 1
  cat >"$bundle/config.json" <<'END'
{"ociVersion": "1.0.2", "root": {"path": "rootfs"}, "hostname": "made",
 "process": {"args": ["/bin/busybox", "sh", "-c", "busybox hostname; exit 7"],
             "env": ["PATH=/bin"], "cwd": "/", "user": {"uid": 0, "gid": 0}},
 "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
 "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "uts"}, {"type": "ipc"}]}}
END
  cp -r "$GANTRY_ROOT/examples/container" "$KIT/maker" || exit 1
  cmake -S "$KIT/maker" -B "$KIT/maker/build" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_COMPILER=g++-14 -DCMAKE_PREFIX_PATH="$KIT/usr" || exit 1
  cmake --build "$KIT/maker/build" || exit 1
  said=$("$KIT/maker/build/run-bundle" "$bundle") || status=$?
  printf '%s: status %s\n' "$said" "$status"
  [ "$said" = made ] && [ "$status" -eq 7 ]
)

# kit_backend_test BACKEND [ARGUMENT...]: the rules of the interface.
kit_backend_test() {
  local more=()
  [ "$1" != vmm ] || more=(--own-network)
  timeout -k 20 "$KIT_SECONDS" "$KIT/usr/bin/gantry-backend-test" --plugin "${KIT_PLUGINS[$1]}" \
    --options "$KIT/$1.yaml" ${more[@]+"${more[@]}"} "${@:2}"
}

# kit_rules BACKEND: every rule is a test.
kit_rules() {
  local log status=0
  log=$(kit_log "rules-$1")
  kit_backend_test "$1" >"$log" 2>&1 </dev/null || status=$?
  awk -v suite="$KIT_SUITE" -v name="$1" -v status="$status" '
    / +not met$/ { print "failed", suite, name ":" $1; failed = 1; next }
    / +met$/ { print "passed", suite, name ":" $1 }
    / +not supported \(/ { print "skipped", suite, name ":" $1 }
    /^[0-9]+ met, [0-9]+ not met, [0-9]+ not supported$/ { closed = 1 }
    END {
      if (!closed || (status != 0 && !failed))
        print "failed", suite, name "(ended-with-status-" status ")"
    }' "$log" >"$log.results"
}

# What a backend with a fault is told: FAULT RULE WHAT. A rule that is not met names it by
# its demand and shows WHAT, an extended regular expression; nothing names the suite's source.
# `-` as RULE: no rule is tried, for the first container fails.
kit_faults_table() {
  cat <<'END'
saves-nothing Recovery.OfAContainerThatRuns wanted: 2
throws - backend 'faulty' threw: out of luck
binds-nothing - has spawned process [0-9]+ and does not say that it is the init: call ProcessContext::Bind
execs-on-the-node InsideExec.IsInTheRootOfItsContainer Process::Start
holds-streams Leftovers.OfStreamsThereAreNoneWhenTheirProcessHasEnded gantryd \([0-9]+\)
confines-little Inside.IsFilteredByTheSeccompProfileOfItsSpec made
confines-little Inside.OfAUserHasTheCapabilitiesOfItsSpecAndNoOther wanted: 
is-root Inside.IsItsUserAndItsGroups 1000
loses-execs Recovery.OfAnExecThatRuns its backend cannot recover it
loses-adopted Recovery.OfAContainerThatRuns wanted: 2
forgets-starts Recovery.OfAStartThatIsNotOnRecord it was started before the engine was killed
gives-up Recovery.OfAContainerThatRuns its backend cannot recover it
deletes-nothing Leftovers.OfAContainerThatWasNotStartedThereAreNoneWhenItIsDeleted Container::Delete
shares-mounts Leftovers.OfMountsThereAreNoneOnTheNode mounts of the container are the node's
has-no-cgroups Limits.OfItsSpecAreThoseOfItsCgroups linux.resources.pids.limit
ignores-hooks Hooks.AreRunAtTheirPointsOrRefused wanted: "?prestart createRuntime
limits-no-devices Limits.OfDevicesAreThoseOfItsSpec opened
END
}

# kit_fault FAULT RULE WHAT: the suite's program says so, of a plugin with that fault.
kit_fault() {
  local fault="$1" rule="$2" what="$3" status=0 said="$KIT/fault-$1-$2"
  printf 'version: 1\nbackends:\n  faulty: {options: {Plugin: %s}}\nhandlers:\n  faulty: {backend: faulty, options: {Fault: %s, BinaryName: crun, Root: "@ROOT@/oci"}}\n' \
    "$KIT/usr/libexec/gantry/plugins/libgantry_runc.so" "$fault" >"$said.yaml"
  local arguments=(--plugin "$GANTRY_ROOT/build/release/tests/libgantry_faulty.so"
    --options "$said.yaml")
  [ "$rule" = - ] || arguments+=(--rule "$rule")
  timeout -k 20 "$KIT_SECONDS" "$KIT/usr/bin/gantry-backend-test" "${arguments[@]}" >"$said" ||
    status=$?
  cat "$said"
  [ "$status" -eq 1 ] || { echo "its status is $status, not 1" && return 1; }
  if [ "$rule" = - ]; then
    grep -q '^No rule was tried:' "$said" || return 1
    grep -q '^0 met, 0 not met, 0 not supported$' "$said" || return 1
  else
    grep -Eq "^$rule +not met\$" "$said" || return 1
    grep -Eq '^    demand: .' "$said" || return 1
  fi
  grep -Eq -- "$what" "$said" || { echo "it does not say '$what'" && return 1; }
  if grep -E '\.(cc|h):|'"$GANTRY_ROOT/tests" "$said"; then
    echo "that names the suite's source" && return 1
  fi
}

# Each fault is a test.
kit_faults() {
  local fault rule what
  while read -r fault rule what; do
    kit_run "fault-$fault-$rule" kit_fault "$fault" "$rule" "$what" || true
  done < <(kit_faults_table)
}

# What the program's words mean, and that it refuses those that name nothing.
kit_words() (
  program="$KIT/usr/bin/gantry-backend-test"
  plugin="$KIT/usr/libexec/gantry/plugins/libgantry_plain.so"
  refuses() {
    local wanted="$1" status=0 said
    shift
    said=$("$@" 2>&1) || status=$?
    printf '%s\n%s\n' "$*" "$said"
    [ "$status" -eq 2 ] && [[ $said == *"$wanted"* ]] || exit 1
  }
  refuses 'no such file' "$program" --plugin "$KIT/nowhere/libgantry_plain.so"
  refuses 'no such file' "$program" --plugin "$plugin" --options "$KIT/nowhere.yaml"
  refuses "it has nothing for the backend 'plain'" \
    "$program" --plugin "$plugin" --options "$KIT/remote.yaml"
  refuses "--rule 'states.*': no rule is called that" \
    "$program" --plugin "$plugin" --rule 'States.Created:states.*'
  refuses 'sh is not in PATH' env PATH="$KIT/usr/bin" "$program" --plugin "$plugin"
  # Each rule has its demand.
  "$program" --list || exit 1
  # A handler whose plugin is not there.
  printf 'version: 1\nhandlers:\n  mine: {backend: nowhere}\n' >"$KIT/missing.yaml"
  status=0
  said=$("$KIT/usr/bin/gantryctl" check "$KIT/missing.yaml" 2>&1) || status=$?
  printf '%s\n' "$said"
  [ "$status" -eq 1 ] && [[ $said == *"missing.yaml:3: handler 'mine': "*"no such file"* ]]
)

# expect WANTED COMMAND...: its output, or `status N`. (The caller is a condition, in
# which `set -e` does nothing.)
expect() {
  local wanted="$1" got status=0
  shift
  got=$("$@") || status=$?
  [ "$status" -eq 0 ] || got="status $status"
  printf '%s: %s\n' "$*" "$got"
  [ "$got" = "$wanted" ] || exit 1
}

# Cgroups whose path ends so. Others' come and go meanwhile, which find(1) complains of.
kit_cgroups() {
  find /sys/fs/cgroup -path "*/$1" 2>/dev/null || true
}

# The example under a real containerd: output, an exit code, an exec, a signal.
kit_containerd() (
  trap node_stop EXIT
  node_start "$GANTRY_E2E_CONTAINERD" "$KIT/usr/bin" crun || exit 1
  cp "$KIT/plain.yaml" "$NODE_DIR/gantry.yaml" || exit 1
  node_ctr images import --all-platforms "$GANTRY_ROOT/build/images/busybox.tar" || exit 1
  local run=(node_ctr run --runtime io.containerd.gantry.v1 --fifo-dir "$NODE_DIR/fifo")
  expect hello "${run[@]}" --rm "$BUSYBOX_IMAGE" one echo hello
  expect 'status 7' "${run[@]}" --rm "$BUSYBOX_IMAGE" two sh -c 'exit 7'
  expect '' "${run[@]}" -d "$BUSYBOX_IMAGE" three sleep 1000
  # shellcheck disable=SC2016
  expect 42 node_ctr tasks exec --exec-id x three sh -c 'echo $((6*7))'
  expect three node_ctr tasks ls -q
  expect '' node_ctr tasks kill -s SIGKILL three
  expect '' node_ctr tasks rm -f three
  expect '' node_ctr tasks ls -q
  expect '' kit_cgroups "$(node_namespace)/three"
)

# kit_vmm_options NAME [OPTION]: a configuration of the backend, as a file of that name.
kit_vmm_options() {
  printf 'version: 1\nhandlers:\n  vmm: {backend: vmm, options: {kernel: %s, initrd: %s, directory: "@ROOT@/vmm", accelerator: %s%s}}\n' \
    "$VMM_IMAGE/kernel" "$VMM_IMAGE/initrd" "${GANTRY_VMM_ACCEL:-auto}" "${2:+, $2}" >"$KIT/$1.yaml"
}

# A guest that panics is shown with its console: no rule is tried.
kit_vmm_panics() {
  local said status=0
  kit_vmm_options panics 'cmdline: rdinit=/tests/devices gantry.end=panic'
  said=$(timeout -k 20 "$KIT_SECONDS" "$KIT/usr/bin/gantry-backend-test" --own-network \
    --plugin "${KIT_PLUGINS[vmm]}" --options "$KIT/panics.yaml") || status=$?
  printf '%s\n' "$said"
  [ "$status" -eq 1 ] || { echo "its status is $status, not 1" && return 1; }
  [[ $said == *'No rule was tried:'*'console ended with: '*'Kernel panic'* ]]
}

# The rules against machines, as built and with the image of the tests: a suite of its own, for
# nearly each has one, of a template.
kit_vmm_suite() {
  local KIT_SUITE=kit-vmm KIT_SECONDS=7200
  KIT=$(mktemp -d /tmp/gk-XXXXXX)
  chmod 755 "$KIT"
  mkdir "$KIT/usr"
  ln -s "$GANTRY_ROOT/build/release/bin" "$KIT/usr/bin"
  kit_vmm_options vmm 'template: 1'
  declare -A KIT_PLUGINS=([vmm]="$GANTRY_ROOT/build/release/bin/plugins/libgantry_vmm.so")
  kit_run vmm-panics kit_vmm_panics || true
  kit_rules vmm
  kit_again vmm-panics rules-vmm
  kit_count vmm-panics
  kit_count rules-vmm
  rm -rf "$KIT"
}

kit_suite() {
  local name names=(words maker containerd)
  KIT=$(mktemp -d /tmp/gk-XXXXXX)
  chmod 755 "$KIT"
  printf 'version: 1\nhandlers:\n  plain: {backend: plain}\ndefault_handler: plain\n' \
    >"$KIT/plain.yaml"
  printf 'version: 1\nhandlers:\n  runc: {backend: runc, options: {BinaryName: crun, Root: %s}}\n' \
    "$KIT/oci" >"$KIT/runc.yaml"
  printf 'version: 1\nbackends:\n  remote: {options: {Server: %s}}\n' \
    "$GANTRY_ROOT/build/release/tests/fake-remote-sandbox" >"$KIT/remote.yaml"
  printf 'version: 1\nhandlers:\n  wasm: {backend: wasm}\n' >"$KIT/wasm.yaml"
  declare -A KIT_PLUGINS=([plain]="$KIT/usr/libexec/gantry/plugins/libgantry_plain.so"
    [runc]="$KIT/usr/libexec/gantry/plugins/libgantry_runc.so"
    [wasm]="$KIT/usr/libexec/gantry/plugins/libgantry_wasm.so"
    [remote]="$GANTRY_ROOT/build/release/tests/libgantry_remote.so")
  if kit_step install cmake --install "$GANTRY_ROOT/build/release" --prefix "$KIT/usr" &&
    kit_step guide kit_guide; then
    for name in "${!KIT_PLUGINS[@]}"; do
      kit_rules "$name" &
      names+=("rules-$name")
    done
    kit_faults &
    mapfile -t -O "${#names[@]}" names < <(kit_faults_table | awk '{ print "fault-" $1 "-" $2 }')
    kit_run words kit_words || true
    kit_run maker kit_maker || true
    kit_run containerd kit_containerd || true
    wait
    kit_again "${names[@]}"
    for name in "${names[@]}"; do
      kit_count "$name"
    done
  fi
  rm -rf "$KIT"
}

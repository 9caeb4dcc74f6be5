# SPDX-License-Identifier: Apache-2.0
# The suite `kit`: gantry installed below a temporary prefix, and with nothing of
# the tree but its examples what docs/writing-a-backend.md says, the rules of the
# interface against three backends, and the example under containerd.

KIT_SECONDS=400

# kit_step NAME COMMAND...: a test of the suite.
kit_step() {
  local name="$1" log="$LOG_DIR/suite-kit-$1.log"
  shift
  if "$@" >"$log" 2>&1 </dev/null; then
    record passed kit "$name"
    return 0
  fi
  record failed kit "$name"
  show_end "$log" | tell_failed kit "$name failed" "$log"
  return 1
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

# kit_rules NAME PLUGIN: every rule is a test.
kit_rules() {
  local name="$1" log="$LOG_DIR/suite-kit-rules-$1.log" status=0
  timeout -k 20 "$KIT_SECONDS" "$KIT/usr/bin/gantry-backend-test" --plugin "$2" \
    --options "$KIT/$name.yaml" >"$log" 2>&1 </dev/null || status=$?
  awk -v suite=kit -v name="$name" -v status="$status" '
    / +met$/ { print "passed", suite, name ":" $1 }
    / +not met$/ { print "failed", suite, name ":" $1; failed = 1 }
    / +not supported \(/ { print "skipped", suite, name ":" $1 }
    /^[0-9]+ met, [0-9]+ not met, [0-9]+ not supported$/ { closed = 1 }
    END {
      if (!closed || (status != 0 && !failed))
        print "failed", suite, name "(ended-with-status-" status ")"
    }' "$log" >"$log.results"
  [ "$status" -eq 0 ] ||
    awk '/ is not met:$/ { show = 1 } show && n++ < 60 { print "      " $0 }' "$log" |
    tell_failed kit "$name ended with status $status" "$log"
  flock "$RESULTS.lock" sh -c 'cat "$1" >>"$2"' - "$log.results" "$RESULTS"
}

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

# The example under a real containerd: output, an exit code, an exec, a signal.
kit_containerd() (
  trap node_stop EXIT
  node_start "$GANTRY_E2E_CONTAINERD" "$KIT/usr/bin" crun || exit 1
  cp "$KIT/plain.yaml" "$NODE_DIR/gantry.yaml"
  node_ctr images import --all-platforms "$GANTRY_ROOT/build/images/busybox.tar" || exit 1
  local run=(node_ctr run --runtime io.containerd.gantry.v1 --fifo-dir "$NODE_DIR/fifo")
  expect hello "${run[@]}" --rm "$BUSYBOX_IMAGE" one echo hello
  expect 'status 7' "${run[@]}" --rm "$BUSYBOX_IMAGE" two sh -c 'exit 7'
  expect '' "${run[@]}" -d "$BUSYBOX_IMAGE" three sleep 1000
  expect 42 node_ctr tasks exec --exec-id x three sh -c 'echo $((6*7))'
  expect three node_ctr tasks ls -q
  expect '' node_ctr tasks kill -s SIGKILL three
  expect '' node_ctr tasks rm -f three
  expect '' node_ctr tasks ls -q
  expect '' find /sys/fs/cgroup -path "*/$(node_namespace)/three"
)

kit_suite() {
  KIT=$(mktemp -d /tmp/gk-XXXXXX)
  chmod 755 "$KIT"
  printf 'version: 1\nhandlers:\n  plain: {backend: plain}\ndefault_handler: plain\n' \
    >"$KIT/plain.yaml"
  printf 'version: 1\nhandlers:\n  runc: {backend: runc, options: {BinaryName: crun, Root: %s}}\n' \
    "$KIT/oci" >"$KIT/runc.yaml"
  printf 'version: 1\nbackends:\n  remote: {options: {Server: %s}}\n' \
    "$GANTRY_ROOT/build/release/tests/fake-remote-sandbox" >"$KIT/remote.yaml"
  if kit_step install cmake --install "$GANTRY_ROOT/build/release" --prefix "$KIT/usr" &&
    kit_step guide kit_guide; then
    kit_rules plain "$KIT/usr/libexec/gantry/plugins/libgantry_plain.so" &
    kit_rules runc "$KIT/usr/libexec/gantry/plugins/libgantry_runc.so" &
    kit_rules remote "$GANTRY_ROOT/build/release/tests/libgantry_remote.so" &
    kit_step containerd kit_containerd
    wait
  fi
  rm -rf "$KIT"
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./run demo: a container, an exec, a terminal and a pod through gantry on a
# private containerd; engine and keeper upgraded and the engine killed under them.
# Everything is removed again, also after a failure.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
. "$GANTRY_ROOT/tools/lib/build.sh"
. "$GANTRY_ROOT/tools/lib/cgroups.sh"
. "$GANTRY_ROOT/tools/lib/images.sh"
. "$GANTRY_ROOT/tools/lib/containerds.sh"
. "$GANTRY_ROOT/tools/lib/private_containerd.sh"

RUNTIME=io.containerd.gantry.v1
BUILD="$GANTRY_ROOT/build/demo"

headline() { printf '\n== %s\n' "$*"; }

# Prints a command as a person would type it, runs it, indents what it says.
show() {
  local status=0
  printf '  $ %s\n' "$*"
  "$@" >"$NODE_DIR/said" 2>&1 </dev/null || status=$?
  sed -e '/DEPRECATION:/d' -e 's/^/    /' "$NODE_DIR/said"
  [ "$status" -eq 0 ] || printf '    (exit code %s)\n' "$status"
}

ctr() { node_ctr "$@"; }
cri() { "$BUILD/tests/cri" --address "unix://$NODE_DIR/c.sock" "${CRI_OPTIONS[@]}" "$@"; }
run_words() { printf 'run --runtime %s --fifo-dir %s' "$RUNTIME" "$NODE_DIR/fifo"; }

# A terminal of 40 x 100 for a command, with the lines of $1 typed into it.
with_terminal() {
  local typed="$1" status=0
  shift
  printf '%b' "$typed" | script -qe -E never -c "stty rows 40 cols 100; $*" /dev/null \
    >"$NODE_DIR/said" 2>&1 || status=$?
  tr -d '\r' <"$NODE_DIR/said" | sed -e '/DEPRECATION:/d' -e '/^ *$/d' -e 's/^/    /'
  printf '    (exit code %s)\n' "$status"
}

# As they are when nobody calls: after a second of that they give memory back.
processes() {
  local pid name total=0 pss
  sleep 6  # containerd asks for statistics each second; memory goes back all the same
  printf '    %-28s %8s %10s\n' process pid 'PSS'
  for name in gantry-keeper gantryd; do
    pid=$(node_process "$name") || continue
    pss=$(pss_of "$pid")
    total=$((total + pss))
    printf '    %-28s %8s %7s KB\n' "$name" "$pid" "$pss"
  done
  printf '    %-28s %8s %7s KB\n' 'gantry in all' '' "$total"
}

demo_container() {
  headline "a container"
  show ctr $(run_words) --rm "$BUSYBOX_IMAGE" hello echo "hello from a container"
  show ctr $(run_words) -d "$BUSYBOX_IMAGE" demo sleep 1000
  show ctr tasks ls
  headline "an exec in it"
  show ctr tasks exec --exec-id look demo sh -c 'echo "pid 1 is: $(cat /proc/1/comm)"; exit 7'
  headline "a terminal session"
  printf '  $ ctr run -t ... sh\n'
  # ctr tells the size after the start, perhaps after the first line was typed.
  with_terminal 'tty\nuntil stty size 2>/dev/null; do sleep 0.1; done\necho $((6*7))\nexit 3\n' \
    "$NODE_BIN/ctr -a $NODE_DIR/c.sock -n $(node_namespace) $(run_words) --rm -t $BUSYBOX_IMAGE term sh"
}

demo_pod() {
  local pod id
  headline "a pod of two containers, through CRI"
  CRI_OPTIONS=(--logs "$NODE_DIR/logs" --cgroup-parent "/$(node_namespace)/pod")
  cri wait "$BUSYBOX_IMAGE" "$PAUSE_IMAGE"
  pod=$(cri runp demo-pod)
  for id in web db; do
    show cri start "$(cri create "$pod" "$id" sh -c "echo $id is up; exec sleep 1000")"
  done
  show cri pods
  show cri ps
  show cri exec "$(cri ps | awk '/ web$/ { print $1 }')" sh -c 'echo "exec in $(hostname): $(id -u)"'
  show cat "$NODE_DIR/logs/web.log" "$NODE_DIR/logs/db.log"
  echo "$pod" >"$NODE_DIR/pod"
}

demo_overview() {
  headline "what runs where"
  show gantryctl ps
  headline "what gantry needs for it"
  processes
}

gantryctl() { env GANTRY_RUN_DIR="$NODE_DIR/run" "$BUILD/bin/gantryctl" "$@"; }
counted() { grep -o 'count-[0-9]*' "$NODE_DIR/count.log" 2>/dev/null; }
count() { counted | tail -n 1 | cut -d- -f2; }
pid_of() { ctr tasks ls 2>/dev/null | awk -v id="$1" '$1 == id { print $2 }'; }

# The sockets of containerd's connections, by their numbers in the kernel.
connections() {
  awk -v dir="$NODE_DIR/run/s/" 'index($8, dir) == 1 && $6 == "03" { print $7 }' /proc/net/unix |
    sort
}

# Waits for five more lines: what was done has lost none, or there are none.
count_on() {
  local until=$(($(count) + 5))
  until [ "$(count)" -ge "$until" ]; do
    kill -0 "$counter" 2>/dev/null || die "the counter ended at $(count)"
    sleep 0.05
  done
  say "    the terminal shows count-$(count)"
}

# A terminal's output goes through the engine, its descriptors lie with the keeper: a
# counter shows what is lost.
demo_upgrade() {
  local counter engine killed keeper pid held status=0
  headline "two upgrades and a kill -9 while a terminal counts and the pod runs"
  script -qec "$NODE_BIN/ctr -a $NODE_DIR/c.sock -n $(node_namespace) $(run_words) --rm -t \
$BUSYBOX_IMAGE count sh -c 'i=0; until [ -e /stop ]; do i=\$((i+1)); echo count-\$i; sleep 0.1; done; exit 42'" \
    /dev/null >"$NODE_DIR/count.log" 2>&1 </dev/null &
  counter=$!
  until counted | grep -qx 'count-5'; do sleep 0.05; done
  keeper=$(node_process gantry-keeper)
  engine=$(node_process gantryd)
  pid=$(pid_of count)
  held=$(connections)
  say "  keeper $keeper holds $(wc -l <<<"$held") connections of containerd, engine $engine, container $pid"
  show gantryctl upgrade
  count_on
  show gantryctl upgrade --keeper "$BUILD/bin/gantry-keeper"
  count_on
  killed=$(node_process gantryd)
  [ "$killed" != "$engine" ] || die "the engine was not replaced"
  say "  \$ kill -9 $killed    # gantryd"
  kill -9 "$killed"
  until engine=$(node_process gantryd) && [ "$engine" != "$killed" ]; do sleep 0.02; done
  say "    a new engine runs: $engine"
  count_on
  show gantryctl status
  [ "$(pid_of count)" = "$pid" ] || die "the container is another process: $(pid_of count)"
  [ "$(node_process gantry-keeper)" = "$keeper" ] || die "the keeper is another process"
  [ -z "$(comm -23 <(echo "$held") <(connections))" ] || die "containerd lost a connection"
  show ctr tasks exec --exec-id stop count touch /stop
  wait "$counter" || status=$?
  say "  the terminal went on to count-$(count), exit code $status"
  [ "$status" -eq 42 ] || die "exit code $status instead of 42"
  [ "$(counted)" = "$(seq -f 'count-%.0f' 1 "$(count)")" ] || die "the counter has a gap: $(counted)"
  say "  $(count) lines, none lost, none doubled; container $pid, keeper $keeper and each of its"
  say "  connections were the same all the time"
}

demo_end() {
  headline "the end"
  show ctr tasks rm -f demo
  show ctr containers rm demo
  show cri stopp "$(cat "$NODE_DIR/pod")"
  show cri rmp "$(cat "$NODE_DIR/pod")"
  show gantryctl ps
  processes
}

need_root demo
"$GANTRY_ROOT/tools/setup" build kit demo
build_preset demo containerd-shim-gantry-v1 gantry-keeper gantryd gantryctl gantry_runc cri
provide_images
trap node_stop EXIT
trap 'exit 130' INT TERM
headline "containerd $GANTRY_E2E_CONTAINERD, private, with gantry"
oci=crun
[ -z "$(unclaimed_controllers)" ] || oci=runc
node_start "$GANTRY_E2E_CONTAINERD" "$BUILD/bin" "$oci"
say "  everything of it is in $NODE_DIR"
show ctr images import "$IMAGE_DIR/busybox.tar"
"$NODE_BIN/ctr" -a "$NODE_DIR/c.sock" -n k8s.io images import "$IMAGE_DIR/busybox.tar" >/dev/null 2>&1
"$NODE_BIN/ctr" -a "$NODE_DIR/c.sock" -n k8s.io images import "$IMAGE_DIR/pause.tar" >/dev/null 2>&1
demo_container
demo_pod
demo_overview
demo_upgrade
demo_end
headline "cleaned up; the demo is done"

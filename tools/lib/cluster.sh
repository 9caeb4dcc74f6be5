# SPDX-License-Identifier: Apache-2.0
# The outer half of ./run cluster: what it consists of, its namespaces and control groups, and the
# table of what came out. The inner half is tools/cluster/inside.

CLUSTER_DIR="$GANTRY_ROOT/build/cluster"
# A column is a RuntimeClass, of tools/cluster/classes.
CLUSTER_COLUMNS=(runc pauseless controller gvisor wasm vmm)
# A row is a program in tools/cluster/rows. `gone` is the last: it waits until all others have gone.
CLUSTER_ROWS=(deployment daemonset job cronjob init sidecar probe-exec probe-http probe-tcp probe-grpc
  probe-fails exec attach logs port-forward cp debug metrics resize oom overhead userns config module
  eviction restart upgrade reboot gone)
# One for each checkout, so that a cluster that was killed is found by the next one.
CLUSTER_CGROUP="gantry-cluster-$(printf %s "$GANTRY_ROOT" | cksum | cut -d' ' -f1)"

# cluster_hierarchies: the roots of the control groups: all of v1, or v2 where that is alone.
# Beside v1 there may be a v2 that has no controllers to speak of; the node does without it.
cluster_hierarchies() {
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    echo /sys/fs/cgroup
  else
    sed -nE 's/^([^ ]+ ){4}([^ ]+) .* - cgroup .*/\2/p' /proc/self/mountinfo | sort -u
  fi
}

# A group in each hierarchy, empty, which is the node's root.
cluster_groups() {
  local root file
  for root in $(cluster_hierarchies); do
    mkdir -p "$root/$CLUSTER_CGROUP"
    # A group of v1 has no processor and no memory before it is told which.
    for file in cpuset.cpus cpuset.mems; do
      [ ! -e "$root/$CLUSTER_CGROUP/$file" ] || [ ! -e "$root/cpuset.cpus" ] ||
        cat "$root/$file" >"$root/$CLUSTER_CGROUP/$file"
    done
  done
}

cluster_prepare() {
  cluster_clean
  mkdir -p "$CLUSTER_DIR"/{run,lib,log,etc,logs/rows}
  cluster_groups
}

# cluster_inside WORD...: becomes tools/cluster/inside, in the namespaces and with no more of the
# environment than it needs. For a subshell: it is killed when the shell that has started it ends.
cluster_inside() {
  local root
  for root in $(cluster_hierarchies); do
    echo "$BASHPID" >"$root/$CLUSTER_CGROUP/cgroup.procs"
  done
  exec 9>&-
  exec env -i HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 GANTRY_CACHE="$GANTRY_CACHE" \
    GANTRY_E2E_CONTAINERD="$GANTRY_E2E_CONTAINERD" GANTRY_KUBERNETES="$KUBERNETES_VERSION" CLUSTER_SLOWNESS="${CLUSTER_SLOWNESS:-1}" \
    PATH="$CLUSTER_DIR/bin:$(kubernetes_bin):$(containerd_bin "$GANTRY_E2E_CONTAINERD"):$(runsc_bin "$RUNSC_MODULE"):/usr/sbin:/usr/bin:/sbin:/bin" \
    setpriv --pdeathsig KILL unshare --mount --net --pid --uts --ipc --cgroup --fork --kill-child --mount-proc \
    "$GANTRY_ROOT/tools/cluster/inside" "$@"
}

cluster_pids() { find "$1/$CLUSTER_CGROUP" -name cgroup.procs -exec cat {} + 2>/dev/null; }

# Ends what is there, also of a run that was killed: the first process takes the others along. Its
# mounts, its network and its processes go with the namespaces.
cluster_clean() {
  local root pids
  for root in $(cluster_hierarchies); do
    [ -d "$root/$CLUSTER_CGROUP" ] || continue
    while pids=$(cluster_pids "$root") && [ -n "$pids" ]; do
      # shellcheck disable=SC2086
      kill -9 $pids 2>/dev/null || true
      sleep 0.1
    done
    find "$root/$CLUSTER_CGROUP" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
  [ ! -d "$CLUSTER_DIR" ] || find "$CLUSTER_DIR" -mindepth 1 -maxdepth 1 ! -name logs -exec rm -rf --one-file-system {} +
}

# For the end, which nothing is to cut short.
cluster_end() {
  trap '' INT TERM HUP
  cluster_clean
}

# cluster_into FILE: puts the table between the two marks in it.
cluster_into() {
  awk -v table="$GANTRY_ROOT/build/cluster.md" '
    index($0, "<!-- cluster begin -->") { print; while ((getline line < table) > 0) print line; inside = 1 }
    index($0, "<!-- cluster end -->") { inside = 0 }
    !inside && !index($0, "<!-- cluster begin -->") { print }' "$1" >"$1.new"
  cat "$1.new" >"$1"
  rm "$1.new"
}

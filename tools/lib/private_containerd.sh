# SPDX-License-Identifier: Apache-2.0
# A private containerd for the demo and the benchmarks: own root, state, socket
# and configuration in a folder below /tmp. The host's is never touched.

NODE_DIR=
NODE_BIN=

# node_start RELEASE GANTRY_BIN OCI_BINARY
node_start() {
  local release="$1" gantry_bin="$2" oci="$3"
  NODE_DIR=$(mktemp -d /tmp/gn-XXXXXX)
  NODE_BIN="$GANTRY_CACHE/containerd/$release/bin"
  mkdir -p "$NODE_DIR"/{root,state,run,fifo,logs}
  node_configuration >"$NODE_DIR/containerd.toml"
  printf 'version: 1\nhandlers:\n  runc:\n    backend: runc\n    options:\n      BinaryName: %s\n' \
    "$oci" >"$NODE_DIR/gantry.yaml"
  PATH="$gantry_bin:$PATH" GANTRY_RUN_DIR="$NODE_DIR/run" GANTRY_CONFIG="$NODE_DIR/gantry.yaml" \
    setsid "$NODE_BIN/containerd" --config "$NODE_DIR/containerd.toml" \
    >"$NODE_DIR/containerd.log" 2>&1 </dev/null &
  disown  # Its end is not for the shell to report.
  local tries=0
  until "$NODE_BIN/ctr" -a "$NODE_DIR/c.sock" version >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -gt 300 ]; then
      tail -n 40 "$NODE_DIR/containerd.log"
      return 1
    fi
    sleep 0.1
  done
}

# For containerd 2.x.
node_configuration() {
  cat <<CONFIG
version = 3
root = "$NODE_DIR/root"
state = "$NODE_DIR/state"
[grpc]
  address = "$NODE_DIR/c.sock"
[plugins.'io.containerd.internal.v1.opt']
  path = "$NODE_DIR/opt"
[plugins.'io.containerd.nri.v1.nri']
  disable = true
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "registry.k8s.io/pause:gantry"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins.'io.containerd.cri.v1.runtime'.containerd]
  default_runtime_name = "gantry"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.gantry]
  runtime_type = "io.containerd.gantry.v1"
[plugins.'io.containerd.cri.v1.runtime'.cni]
  conf_dir = "$NODE_DIR/cni"
CONFIG
}

# node_ctr WORD...: ctr in the node's own namespace.
node_ctr() { "$NODE_BIN/ctr" -a "$NODE_DIR/c.sock" -n "$(node_namespace)" "$@"; }

node_namespace() { basename "$NODE_DIR"; }

# The processes that have the node's folder in their environment: containerd,
# keeper, engine, and shims.
node_processes() {
  local environ pid
  for environ in /proc/[0-9]*/environ; do
    if tr '\0' '\n' 2>/dev/null <"$environ" | grep -qx "GANTRY_RUN_DIR=$NODE_DIR/run"; then
      pid="${environ#/proc/}"
      echo "${pid%/environ}"
    fi
  done
}

# node_process NAME: the pid of the node's gantryd, gantry-keeper, ...
node_process() {
  local pid
  for pid in $(node_processes); do
    if [ "$(tr '\0' '\n' 2>/dev/null </proc/"$pid"/cmdline | head -n 1 | sed 's|.*/||')" = "$1" ]; then
      echo "$pid"
      return 0
    fi
  done
  return 1
}

# Proportional set size of a process in KB.
pss_of() { awk '/^Pss:/ { print $2 }' "/proc/$1/smaps_rollup" 2>/dev/null || echo 0; }

# Ends what the node runs and removes its folder. Containers that a failed demo
# left are found by their cgroups, which are named after the node.
node_stop() {
  [ -n "$NODE_DIR" ] && [ -d "$NODE_DIR" ] || return 0
  local id pid tries=0
  for id in $(node_ctr tasks ls -q 2>/dev/null); do
    node_ctr tasks rm -f "$id" >/dev/null 2>&1 || true
  done
  while [ "$tries" -lt 50 ]; do
    tries=$((tries + 1))
    local left
    left="$(node_processes) $(grep -ls "/$(node_namespace)[/-]" /proc/[0-9]*/cgroup | cut -d/ -f3 || true)"
    [ -n "${left// /}" ] || break
    for pid in $left; do
      kill -9 "$pid" 2>/dev/null || true
    done
    sleep 0.1
  done
  awk -v dir="$NODE_DIR/" 'index($5, dir) == 1 { print $5 }' /proc/self/mountinfo | tac |
    while read -r point; do umount -l "$point" || true; done
  find /sys/fs/cgroup -depth -type d \( -path "*/$(node_namespace)" -o -path "*/$(node_namespace)/*" \) \
    -exec rmdir {} + 2>/dev/null || true
  rm -rf "/run/containerd/runc/$(node_namespace)" "$NODE_DIR"
  NODE_DIR=
}

# SPDX-License-Identifier: Apache-2.0
# What the rows of ./run cluster are written with.

k() { kubectl -n "$NAMESPACE" "$@"; }

# fail TEXT...: the row has failed, for this reason.
fail() {
  say "reason: $*"
  exit 1
}

# leave_out TEXT...: the row is not for this column.
leave_out() {
  say "reason: $*"
  exit 3
}

seconds() { echo "$(($1 * CLUSTER_SLOWNESS))s"; }

# apply NAME: the manifest of that name, for this column.
apply() { fill "$GANTRY_ROOT/tools/cluster/manifests/$1.yaml" | k apply -f -; }

# wait_for SECONDS OBJECT CONDITION
wait_for() {
  k wait --for="$3" "$2" --timeout="$(seconds "$1")" || fail "$2 is not '$3' in time"
}

rolled_out() { k rollout status "$1" --timeout="$(seconds "${2:-120}")" || fail "$1 is not rolled out in time"; }

# field OBJECT PATH
field() { k get "$1" -o jsonpath="{$2}"; }

# is OBJECT PATH VALUE: the field has this value.
is() { [ "$(field "$1" "$2")" = "$3" ]; }

# expect TEXT FOUND WANTED
expect() { [ "$2" = "$3" ] || fail "$1: '$2' instead of '$3'"; }

# A client on the node.
http() { busybox wget -q -T 5 -O - "http://$1"; }

# node_raw PATH: of the kubelet.
node_raw() { kubectl get --raw "/api/v1/nodes/$NODE_NAME/proxy/$1"; }

# pod_groups POD [HIERARCHY]: the pod's control groups on the node, itself first.
pod_groups() {
  local uid root=/sys/fs/cgroup
  uid=$(field "pod/$1" .metadata.uid)
  [ -e /sys/fs/cgroup/cgroup.controllers ] || root+="/${2:-memory}"
  find "$root" -depth -type d -path "*pod$uid*" | tac
}

# memory_limit GROUP: in bytes.
memory_limit() { cat "$1/memory.limit_in_bytes" 2>/dev/null || cat "$1/memory.max"; }

# The pods' identities: what is another one, or was started again, shows in it.
identities() {
  k get pods -o jsonpath='{range .items[*]}{.metadata.name} {range .status.containerStatuses[*]}{.containerID} {.restartCount} {end}{"\n"}{end}' | sort
}

# For the log of a row that has failed.
show_state() {
  set +ex
  k get all -o wide
  k describe pods
  k get events --sort-by=.lastTimestamp
  gantryctl ps
  tail -n 40 /run/gantry/gantry.log
}

# SPDX-License-Identifier: Apache-2.0
# A node with cgroup v1 and v2 beside each other: crun refuses it as long as the v2
# tree has a controller that no v1 hierarchy has.

# Prints those controllers; nothing on other nodes.
unclaimed_controllers() {
  cat /sys/fs/cgroup/unified/cgroup.controllers 2>/dev/null || true
}

# For tests: gives each a v1 hierarchy, which stays until the node's next boot.
claim_controllers() {
  local name
  for name in $(unclaimed_controllers); do
    say "  --  crun needs cgroup v1 for '$name': mounted on /sys/fs/cgroup/$name"
    mkdir -p "/sys/fs/cgroup/$name"
    mount -t cgroup -o "$name" cgroup "/sys/fs/cgroup/$name"
  done
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/check_k8s_image.sh: is the image of ./run k8s-image in order? It is made twice, and is the same;
# what it installs runs on a node that has nothing but busybox and a containerd, which it configures;
# and taken off again it leaves that node as it was. No cluster and no systemd: the labels are left
# out, and the restart of containerd. As root.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
. "$GANTRY_ROOT/tools/lib/containerds.sh"

need_root tools/check_k8s_image.sh
provide_containerds "$GANTRY_E2E_CONTAINERD"
WORK=$(mktemp -d)
NODE="$WORK/node" ROOT="$WORK/root"
trap 'umount -R "$ROOT/proc" "$ROOT/host/proc" "$ROOT/host" 2>/dev/null || true; rm -rf "$WORK"' EXIT

make_twice() {
  "$GANTRY_ROOT/tools/k8s-image.sh" "$WORK/one.tar" &&
    "$GANTRY_ROOT/tools/k8s-image.sh" "$WORK/two.tar" &&
    cmp "$WORK/one.tar" "$WORK/two.tar"
}

# The one layer of it.
unpack() {
  local manifest layer
  mkdir "$WORK/layout" "$ROOT"
  tar -C "$WORK/layout" -xf "$WORK/one.tar"
  manifest=$(grep -o 'sha256:[0-9a-f]*' "$WORK/layout/index.json" | cut -d: -f2)
  layer=$(sed 's/.*"layers"//' "$WORK/layout/blobs/sha256/$manifest" | grep -o 'sha256:[0-9a-f]*' | cut -d: -f2)
  tar -C "$ROOT" -xf "$WORK/layout/blobs/sha256/$layer"
  printf 'version: 1\nhandlers:\n  runc: {backend: runc}\n  wasm: {backend: wasm}\n' >"$ROOT/etc/gantry-node/gantry.yaml"
}

# No C library, no shell but busybox's.
make_node() {
  mkdir -p "$NODE"/{bin,dev,etc/containerd,opt,proc,run,tmp,usr/bin,usr/local/bin}
  cp "$(command -v busybox)" "$NODE/bin/busybox"
  ln -s /bin/busybox "$NODE/usr/bin/env"
  cp "$(containerd_bin "$GANTRY_E2E_CONTAINERD")/containerd" "$NODE/usr/bin/"
  mknod -m 666 "$NODE/dev/null" c 1 3
  mknod -m 666 "$NODE/dev/urandom" c 1 9
  "$NODE/usr/bin/containerd" config default >"$NODE/etc/containerd/config.toml"
  mount --bind "$NODE" "$ROOT/host"
  mount -t proc proc "$ROOT/host/proc"
  mount -t proc proc "$ROOT/proc"
}

# installer COMMAND: until it says that it is ready.
installer() {
  local pid left=600
  rm -f "$ROOT/run/gantry-node/ready"
  env -i PATH=/bin NODE_NAME=here GANTRY_HANDLERS=runc=gantry:podsandbox,wasm=wasm:podsandbox \
    GANTRY_RESTART=never GANTRY_API=none GANTRY_ENTER="chroot /host" GANTRY_POLL=1 \
    "$(command -v chroot)" "$ROOT" /bin/gantry-node "$1" &
  pid=$!
  until [ -e "$ROOT/run/gantry-node/ready" ]; do
    kill -0 "$pid" 2>/dev/null || { say "the installer has ended"; return 1; }
    left=$((left - 1))
    [ "$left" -gt 0 ] || { say "the installer is never ready"; return 1; }
    sleep 0.5
  done
  kill "$pid"
  wait "$pid" || true
}

# What is on the node, but for what is not its own.
state() { (cd "$NODE" && find . -path ./proc -prune -o -printf '%p %y %m %l\n' | LC_ALL=C sort && sha256sum etc/containerd/config.toml); }

on_node() { chroot "$NODE" "$@"; }

# A node without a C library runs what was installed, and its containerd knows it.
works() {
  on_node /opt/gantry/current/bin/gantryctl --version &&
    on_node /opt/gantry/current/libexec/gantry/gantryd --version &&
    on_node /usr/bin/containerd config dump |
    grep "runtime_path = '/opt/gantry/current/bin/containerd-shim-gantry-wasm-v1'" &&
    grep 'backend: wasm' "$NODE/etc/gantry/gantry.yaml"
}

check() {
  state >"$WORK/before" && installer install && works &&
    state >"$WORK/installed" && say "once more:" && installer install &&
    state | cmp - "$WORK/installed" &&
    installer uninstall && state >"$WORK/after" && diff "$WORK/before" "$WORK/after"
}

step k8s-image-twice "image of the installer, twice" make_twice
unpack
make_node
step k8s-image-check "image of the installer: install, again, uninstall" check

# SPDX-License-Identifier: Apache-2.0
# What tests of the vmm backend boot: the guest image with the agent of the build, in build/vmm, and
# a disk with busybox for containers. Kernel and modules are those of the guest's Debian
# (guest_base.sh).
. "$GANTRY_ROOT/tools/lib/guest_base.sh"

VMM_IMAGE="$GANTRY_ROOT/build/vmm"

vmm_disk() {
  local root="$VMM_IMAGE/root.part" applet
  rm -rf "$root"
  mkdir -p "$root"/{bin,dev,proc,sys/fs/cgroup,tmp}
  cp /bin/busybox "$root/bin/busybox"
  for applet in sh cat date grep head hostname ip ls mknod rm sleep stty tail; do
    ln -s busybox "$root/bin/$applet"
  done
  rm -f "$VMM_IMAGE/root.img"
  mke2fs -q -t ext4 -d "$root" "$VMM_IMAGE/root.img" 16M
  rm -rf "$root"
}

# provide_vmm_image: needs the release build.
provide_vmm_image() {
  local agent="$VMM_IMAGE/agent"
  provide_guest_base || return
  mkdir -p "$VMM_IMAGE"
  strip -o "$agent" "$GANTRY_ROOT/build/release/bin/gantry-agent"
  step vmm-image "the guest image of the vmm backend" \
    "$GANTRY_ROOT/tools/vmm/make-image" "$agent" "$GUEST_BASE/root" "$VMM_IMAGE" &&
    vmm_disk
}

# SPDX-License-Identifier: Apache-2.0
# What tests of the vmm backend boot: the guest image with the agent of the build, in build/vmm, and
# a disk with busybox for containers. Its initrd has first processes of the tests' own, too, which
# the kernel's command line chooses: rdinit=/tests/NAME. Kernel and modules: vmm_kernel.sh.
. "$GANTRY_ROOT/tools/lib/vmm_kernel.sh"

VMM_IMAGE="$GANTRY_ROOT/build/vmm"
# Targets of the build; vmm_image_programs is all of them.
VMM_TEST_GUESTS=(devices programs streams)

vmm_disk() {
  local root="$VMM_IMAGE/root.part" applet
  rm -rf "$root"
  mkdir -p "$root"/{bin,dev,proc,sys/fs/cgroup,tmp}
  cp /bin/busybox "$root/bin/busybox"
  for applet in sh cat date grep head hostname ip ls mknod rm sleep stty tail; do
    ln -s busybox "$root/bin/$applet"
  done
  rm -f "$VMM_IMAGE/root.img"
  PATH="$PATH:/usr/sbin:/sbin" mke2fs -q -t ext4 -d "$root" "$VMM_IMAGE/root.img" 16M
  rm -rf "$root"
}

vmm_make_image() {
  local built="$GANTRY_ROOT/build/release" guest more=()
  mkdir -p "$VMM_IMAGE/tests"
  strip -o "$VMM_IMAGE/agent" "$built/bin/gantry-agent"
  for guest in "${VMM_TEST_GUESTS[@]}"; do
    strip -o "$VMM_IMAGE/tests/$guest" "$built/tests/vmm-guest-$guest"
    more+=("tests/$guest=$VMM_IMAGE/tests/$guest")
  done
  "$GANTRY_ROOT/tools/vmm/make-image" "$VMM_IMAGE/agent" "$VMM_KERNEL" "$VMM_IMAGE" "${more[@]}"
}

# provide_vmm_image: needs vmm_image_programs of the release build. It is made anew when one of them,
# the kernel or what makes it is newer.
provide_vmm_image() {
  local part
  provide_vmm_kernel || return
  for part in "$GANTRY_ROOT"/build/release/{bin/gantry-agent,tests/vmm-guest-*} "$VMM_KERNEL" \
    "$GANTRY_ROOT"/tools/{vmm/make-image,lib/vmm_image.sh}; do
    [ "$VMM_IMAGE/root.img" -nt "$part" ] && continue
    step vmm-image "the guest image of the vmm backend" vmm_make_image && vmm_disk
    return
  done
}

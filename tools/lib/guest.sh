# SPDX-License-Identifier: Apache-2.0
# The guest of `./run node`: a Debian 13 with systemd as an ext4 image, with gantry
# installed in it as on a node. Made without a loop device and without a
# mount. tools/node/make-image makes it.
. "$GANTRY_ROOT/tools/lib/guest_base.sh"

GUEST_IMAGE_SIZE=3G
GUEST_MEMORY_MB="${GANTRY_NODE_MEMORY_MB:-2048}"
GUEST_IMAGE="${GUEST_IMAGE:-$GANTRY_ROOT/build/node/disk.img}"
# Where the tests are in the guest.
GUEST_TESTS=/opt/gantry-tests

# --- The image ---------------------------------------------------------------

# As containerd's documentation has it: programs below /usr/local, its unit.
guest_containerd() {
  local root="$1" bin
  bin=$(containerd_bin "$GANTRY_E2E_CONTAINERD")
  cp "$bin"/{containerd,ctr,containerd-shim-runc-v2} "$root/usr/local/bin/"
  mkdir -p "$root/etc/containerd" "$root/usr/local/lib/systemd/system"
  cp "$GANTRY_ROOT/tools/node/containerd.service" "$root/usr/local/lib/systemd/system/"
  cp "$GANTRY_ROOT/tools/node/config.toml" "$root/etc/containerd/"
}

# As README.md has it: ./run install, a configuration, the units.
guest_gantry() {
  local root="$1" handler
  DESTDIR="$root" cmake --install "$GANTRY_ROOT/build/release" --prefix /usr/local
  mkdir -p "$root/etc/gantry"
  cp "$GANTRY_ROOT/tools/node/gantry.yaml" "$root/etc/gantry/"
  for handler in {crun,runc,wasm}{,-plain}; do
    ln -s containerd-shim-gantry-v1 "$root/usr/local/bin/containerd-shim-gantry-$handler-v1"
  done
  chroot "$root" systemctl enable containerd gantry
}

# As docs/packages.md has it, but that the tests do it: three releases, and nothing installed.
# The one before has the same programs, in other files; what the later one calls gantryd ends at
# once.
guest_packages() {
  local root="$1" folder="$1$GUEST_TESTS/packages" release
  mkdir -p "$folder"/{before,now,refuses}
  for release in before now refuses; do
    guest_release "$folder/$release" "$release"
  done
  chroot "$root" systemctl enable containerd
}

# guest_release FOLDER before|now|refuses
guest_release() {
  local work="$1.part" name version wanted
  for name in gantry gantry-{grpc,gvisor,vmm,wasm}; do
    rm -rf "$work"
    dpkg-deb -R "$PACKAGES"/"${name}"_*.deb "$work"
    version=$(sed -n 's/^Version: //p' "$work/DEBIAN/control")
    case "$2" in
      before) wanted="0~$version" ;;
      now) wanted="$version" ;;
      refuses) wanted="$version+refuses" ;;
    esac
    sed -i "s/^Version: .*/Version: $wanted/; s/gantry (= [^)]*)/gantry (= $wanted)/" \
      "$work/DEBIAN/control"
    if [ "$2/$name" = refuses/gantry ]; then
      printf '#!/bin/sh\necho "this engine refuses" >&2\nexit 1\n' >"$work/usr/libexec/gantry/gantryd"
    fi
    # The guest is slow.
    dpkg-deb -Znone -b "$work" "$1/${name}_${wanted}_amd64.deb"
  done
  rm -rf "$work"
}

# guest_tests ROOT PROGRAM...
guest_tests() {
  local root="$1" tests="$1$GUEST_TESTS" program
  mkdir -p "$tests/build/tests" "$tests/images" "$tests/cache/containerd/$GANTRY_E2E_CONTAINERD"
  ln -s /usr/local/bin "$tests/cache/containerd/$GANTRY_E2E_CONTAINERD/bin"
  for program in "${@:2}"; do
    strip -o "$tests/build/tests/$program" "$GANTRY_ROOT/build/release/tests/$program"
  done
  cp "$IMAGE_DIR"/{busybox,pause,wasm-*}.tar "$tests/images/"
  cp "$GANTRY_ROOT/tools/node/guest-tests" "$GANTRY_ROOT/tools/lib/gtest.sh" "$tests/"
  cp "$GANTRY_ROOT/tools/node/gantry-node-tests.service" "$root/etc/systemd/system/"
  chroot "$root" systemctl enable gantry-node-tests
}

# What else the tests of a node run, where gantry is installed as it was built.
guest_programs() {
  guest_maker "$1"
  cp -r "$GANTRY_ROOT/build/release/guests" "$1$GUEST_TESTS/guests"
}

# The programs that tests of the maker of containers run, where they were built.
guest_maker() {
  local release="$GANTRY_ROOT/build/release"
  mkdir -p "$1$release"/{bin,tests}
  ln -s /usr/local/libexec/gantry/gantry-init "$1$release/bin/gantry-init"
  strip -o "$1$release/tests/container_probe" "$release/tests/container_probe"
}

# guest_file PATH TARGET: takes a file out of the image of a guest that is off.
guest_file() {
  rm -f "$2"
  debugfs -R "dump $1 $2" "$GUEST_IMAGE" 2>/dev/null
  [ -s "$2" ]
}

# --- The machine -------------------------------------------------------------

# Whether a guest really runs under KVM: the device may be there and of no use.
# The kernel, without a root, is to come up and panic.
guest_kvm_works() {
  local said="$LOG_DIR/guest-kvm.log"
  [ -w /dev/kvm ] || return 1
  timeout -k 5 20 "${GUEST_QEMU[@]}" -accel kvm -cpu host -m 512 -kernel "$GUEST_BASE/kernel" \
    -append "console=ttyS0 panic=-1" >"$said" 2>&1 </dev/null &&
    grep -q 'Kernel panic' "$said"
}

GUEST_QEMU=(qemu-system-x86_64 -machine q35,sata=off,usb=off -nodefaults -display none -no-reboot -serial stdio)

# Sets GUEST_ACCELERATOR, and GUEST_SLOWNESS: how much longer than on a machine of
# its own things may take.
guest_choose_accelerator() {
  if guest_kvm_works; then
    GUEST_ACCELERATOR=(-accel kvm -cpu host)
    GUEST_SLOWNESS=2
    say "  --  the guest runs under KVM"
  else
    GUEST_ACCELERATOR=(-accel "tcg,thread=multi" -cpu max)
    GUEST_SLOWNESS=8
    say "  --  the guest runs without KVM, many times slower"
  fi
}

guest_has_kvm() { [ "${GUEST_ACCELERATOR[*]}" = '-accel kvm -cpu host' ]; }

# Without a look at whether the timer works: a guest without KVM on a busy machine looks broken,
# and the kernel panics. Source: Linux, admin-guide/kernel-parameters.txt, no_timer_check.
# guest_command [WORD...]: sets GUEST_COMMAND, which boots the image with these words
# on the kernel's command line until it powers off. The console is its stdin and stdout.
guest_command() {
  GUEST_COMMAND=("${GUEST_QEMU[@]}" "${GUEST_ACCELERATOR[@]}" -smp 2 -m "$GUEST_MEMORY_MB"
    -kernel "$GUEST_BASE/kernel" -initrd "$GUEST_BASE/initrd"
    -append "root=/dev/vda rw console=ttyS0 quiet mitigations=off no_timer_check panic=-1 gantry.slowness=$GUEST_SLOWNESS $*"
    -drive "file=$GUEST_IMAGE,format=raw,if=virtio,cache=unsafe" -device virtio-rng-pci)
}

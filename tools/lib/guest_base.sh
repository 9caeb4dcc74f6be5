# SPDX-License-Identifier: Apache-2.0
# What of the guest is not gantry's and not containerd's: a Debian 13 with systemd,
# kernel and OCI runtimes. It is kept in $GANTRY_CACHE/node and made anew when this
# file changes. tools/node/make-base makes it.

GUEST_MIRROR=http://deb.debian.org/debian
# init and kernel, then what a node needs.
GUEST_PACKAGES=systemd,systemd-sysv,dbus,udev,kmod,initramfs-tools,linux-image-cloud-amd64
GUEST_PACKAGES+=,runc,crun,busybox-static,iproute2,procps,util-linux
# The libraries of the test programs; debootstrap cannot order these.
GUEST_LIBRARIES=(libgrpc++1.51t64 libprotobuf32t64)
GUEST_BASE="$GANTRY_CACHE/node/$(sha256sum "$GANTRY_ROOT/tools/lib/guest_base.sh" | cut -c1-16)"

# With the proxy that apt has.
guest_proxy() {
  local proxy
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  [ -z "${proxy:-}" ] || [ "$proxy" = DIRECT ] || export http_proxy="$proxy"
}

guest_debootstrap() {
  rm -rf "$1" "$1.null"
  # Where device nodes cannot be made it binds the host's, but only in a container
  # that calls itself lxc.
  if ! mknod "$1.null" c 1 3; then
    export container=lxc
  fi
  rm -f "$1.null"
  debootstrap --variant=minbase --keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
    --include="$GUEST_PACKAGES" trixie "$1" "$GUEST_MIRROR"
}

guest_libraries() {
  DEBIAN_FRONTEND=noninteractive chroot "$1" apt-get -q -y install \
    --no-install-recommends "${GUEST_LIBRARIES[@]}"
}

# guest_configure ROOT: the system, without gantry and containerd.
guest_configure() {
  local root="$1"
  echo gantry-node >"$root/etc/hostname"
  printf '127.0.0.1 localhost gantry-node\n' >"$root/etc/hosts"
  printf '/dev/vda / ext4 defaults 0 1\n' >"$root/etc/fstab"
  mkdir -p "$root/etc/systemd/system.conf.d" "$root/etc/systemd/system/serial-getty@ttyS0.service.d"
  # A container's init that does not end by SIGTERM holds up a reboot that long.
  printf '[Manager]\nDefaultTimeoutStopSec=15s\n' >"$root/etc/systemd/system.conf.d/gantry-node.conf"
  # For `./run node -i`.
  printf '[Service]\nExecStart=\nExecStart=-/sbin/agetty -o "-p -f -- \\\\u" --autologin root --noclear %%I 115200 vt220\n' \
    >"$root/etc/systemd/system/serial-getty@ttyS0.service.d/autologin.conf"
  chroot "$root" systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
    e2scrub_all.timer fstrim.timer systemd-tmpfiles-clean.timer systemd-networkd-wait-online.service
  # Only what this machine has: a third of the time to boot is unpacking it.
  echo MODULES=list >"$root/etc/initramfs-tools/conf.d/gantry-node"
  printf 'virtio_pci\nvirtio_blk\next4\n' >>"$root/etc/initramfs-tools/modules"
  chroot "$root" update-initramfs -u
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale,info}
}

provide_guest_base() {
  [ -f "$GUEST_BASE/initrd" ] ||
    step guest-base "the guest's Debian 13, kept in $GUEST_BASE" "$GANTRY_ROOT/tools/node/make-base"
}

# SPDX-License-Identifier: Apache-2.0
# The kernel of the vmm backend's guests: Debian 13's for clouds, unpacked in
# $GANTRY_CACHE/vmm-kernel and never installed on the host.
. "$GANTRY_ROOT/tools/lib/programs.sh"

VMM_KERNEL_SERIES=6.12
VMM_KERNEL="$GANTRY_CACHE/vmm-kernel/$VMM_KERNEL_SERIES"

# vmm_kernel_package: the newest of the series. The name that has no version in it depends on it.
vmm_kernel_package() {
  apt-cache show linux-image-cloud-amd64 |
    sed -n "s/^Depends: \(linux-image-${VMM_KERNEL_SERIES//./\\.}[^ ,]*\).*/\1/p" | head -n 1
}

# What the package's own script does when it is installed: modules.dep.
vmm_kernel_finish() {
  local modules
  for modules in "$1"/lib/modules/*; do
    "$(PATH="$PATH:/usr/sbin:/sbin" command -v depmod)" -b "$1" "${modules##*/}" || return
  done
}

vmm_kernel_unpack() {
  local package work status=0
  package=$(vmm_kernel_package)
  if [ -z "$package" ]; then
    retry 3 apt-get -q update
    package=$(vmm_kernel_package)
  fi
  [ -n "$package" ] || {
    say "no package source has a linux-image-$VMM_KERNEL_SERIES*-cloud-amd64"
    return 1
  }
  work=$(mktemp -d)
  (
    set -e
    chmod 755 "$work" && cd "$work"
    retry 3 apt-get -q download "$package"
    dpkg -x "$package"_*.deb unpacked
    # Debian 13 has /usr/lib, which it is there by a link.
    [ -d unpacked/lib ] || mv unpacked/usr/lib unpacked/lib
    vmm_kernel_finish unpacked
    rm -rf "$VMM_KERNEL.part" "$VMM_KERNEL"
    mkdir -p "$(dirname "$VMM_KERNEL")"
    mkdir "$VMM_KERNEL.part"
    mv unpacked/boot unpacked/lib "$VMM_KERNEL.part/"
    mv "$VMM_KERNEL.part" "$VMM_KERNEL"
  ) || status=$?
  rm -rf "$work"
  return "$status"
}

provide_vmm_kernel() {
  compgen -G "$VMM_KERNEL/lib/modules/*/modules.dep" >/dev/null ||
    step vmm-kernel "the kernel of the vmm backend's guests, in $VMM_KERNEL" vmm_kernel_unpack
}

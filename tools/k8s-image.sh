#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./run k8s-image [-t TREE] [-m] [FILE]: makes the image of the installer for Kubernetes, as an OCI
# archive: FILE, or build/images/node.tar. TREE is what was installed (`./run install`, or packages
# that were unpacked: the folder with bin and libexec in it); without it gantry is built. -m: with
# kernel and initrd of the vmm backend's guests.
#
# No daemon and no other image are needed, and the same input gives the same bytes. The programs run on
# any distribution: what they link to is beside them, the loader too.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
. "$GANTRY_ROOT/tools/lib/build.sh"
. "$GANTRY_ROOT/tools/lib/images.sh"

SOURCE="$GANTRY_ROOT/packaging/kubernetes"
OPT=/opt/gantry

tree= machines=
while getopts t:m option; do
  case "$option" in
    t) tree="$(readlink -f "$OPTARG")" ;;
    m) machines=1 ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
file="$(readlink -m "${1:-$IMAGE_DIR/node.tar}")"

version_of_tree() { sed -n 's/^project(gantry VERSION \([0-9.]*\).*/\1/p' "$GANTRY_ROOT/CMakeLists.txt"; }

is_elf() { [ "$(head -c 4 "$1" | tail -c 3)" = ELF ]; }

# Not by `grep -q`, which ends while readelf still writes: that is a failure then, now and again.
has() { [[ "$1" = *"$2"* ]]; }

# What a pod needs of an install tree: no headers, no archives, no pages.
take_tree() {
  local part
  mkdir -p "$2"
  for part in bin libexec lib/systemd share/gantry; do
    [ ! -e "$1/$part" ] || { mkdir -p "$(dirname "$2/$part")" && cp -a "$1/$part" "$2/$part"; }
  done
  [ -d "$2/bin" ] && [ -x "$2/libexec/gantry/gantryd" ] || die "'$1' has no gantry in it"
}

# elfs DIR: programs and libraries that are linked to others.
elfs() {
  local one
  find "$1" -type f | LC_ALL=C sort | while read -r one; do
    ! is_elf "$one" || ! has "$(readelf -d "$one" 2>/dev/null)" '(NEEDED)' || echo "$one"
  done
}

# bundle ROOT PREFIX: libraries and loader beside the programs, whose paths then name them.
bundle() {
  local root="$1" lib="$1/lib/gantry" one library loader
  mkdir -p "$lib"
  elfs "$root" >"$WORK/elfs"
  while read -r one; do
    ldd "$one" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*ld-linux[^ ]*\) .*/\1/p'
  done <"$WORK/elfs" | LC_ALL=C sort -u >"$WORK/libraries"
  while read -r library; do
    [ -e "$lib/${library##*/}" ] || cp -L "$library" "$lib/${library##*/}"
  done <"$WORK/libraries"
  loader=$(basename "$(ls "$lib"/ld-linux*)")
  { cat "$WORK/elfs"; elfs "$lib"; } | while read -r one; do
    [ "${one##*/}" != "$loader" ] || continue
    ! has "$(readelf -l "$one")" 'program interpreter' ||
      patchelf --set-interpreter "$2/lib/gantry/$loader" "$one"
    patchelf --set-rpath "$2/lib/gantry" "$one"
  done
}

# Of all files, before anything names where they will be.
digest_of() {
  (cd "$1" && find . \( -type f -o -type l \) | LC_ALL=C sort | while read -r one; do
    if [ -L "$one" ]; then echo "$one -> $(readlink "$one")"; else sha256sum "$one"; fi
  done) | sha256sum | cut -c1-12
}

make_rootfs() {
  local root="$1" id="$2" applet
  mkdir -p "$root"/{bin,dev,etc/gantry-node,host,proc,run,sys,tmp} "$root$OPT"
  cp "$(command -v busybox)" "$root/bin/busybox"
  for applet in $("$root/bin/busybox" --list); do
    [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
  done
  cp "$SOURCE/gantry-node" "$root/bin/gantry-node"
  echo "$id" >"$root/etc/gantry-release"
  printf 'root:x:0:0:root:/root:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\n' >"$root/etc/group"
}

make_image() {
  local staged="$WORK/tree" id root="$WORK/root" unit
  if [ -n "$tree" ]; then
    take_tree "$tree" "$staged"
  else
    DESTDIR="$WORK/dest" cmake --install "$GANTRY_ROOT/build/release" --prefix /usr --strip >/dev/null
    take_tree "$WORK/dest/usr" "$staged"
  fi
  [ -z "$machines" ] || "$GANTRY_ROOT/tools/vmm-image.sh" "$staged"
  cp "$GANTRY_ROOT/build/release/bin/gantry-node-api" "$staged/libexec/gantry/"
  strip "$staged/libexec/gantry/gantry-node-api"
  # The paths of whatever prefix it was.
  for unit in "$staged"/lib/systemd/system/*; do
    sed -i "s#/[^ =]*/\(bin/gantry\|libexec/gantry/\)#$OPT/current/\1#g" "$unit"
  done
  find "$staged" -type f -perm /111 -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
  id="$(version_of_tree)-$(digest_of "$staged")"
  bundle "$staged" "$OPT/$id"
  make_rootfs "$root" "$id"
  mv "$staged" "$root$OPT/$id"
  find "$root" -type d -exec chmod 755 {} +
  chmod 1777 "$root/tmp"
  mkdir -p "${file%/*}"
  pack_image "docker.io/gantry/node:$(version_of_tree)" "$root" \
    '{"Env":["PATH=/bin"],"Entrypoint":["/bin/gantry-node"],"WorkingDir":"/"}' "$file"
  echo "$id" >"$WORK/id"
}

for program in busybox patchelf readelf; do
  command -v "$program" >/dev/null || "$GANTRY_ROOT/tools/setup" k8s
done
if [ -z "$tree" ]; then
  "$GANTRY_ROOT/tools/setup" build kit
  build_preset release installed gantry-node-api
else
  build_preset release gantry-node-api
fi
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
# Not by `step`, in which a command that fails ends nothing.
say "  ... image of the installer, see build/logs/k8s-image.log"
make_image >"$LOG_DIR/k8s-image.log"
say "$(cat "$WORK/id"): $file, sha256 $(sha256sum "$file" | cut -d' ' -f1)"

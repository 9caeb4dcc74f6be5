# SPDX-License-Identifier: Apache-2.0
# Makes the images that the demo, the tests and the benchmarks run, as OCI
# archives in build/images: busybox.tar and pause.tar. Needs no image tool and
# no network: busybox-static, the compiler, tar and sha256sum.

IMAGE_DIR="$GANTRY_ROOT/build/images"
BUSYBOX_IMAGE=docker.io/library/busybox:gantry
PAUSE_IMAGE=registry.k8s.io/pause:gantry

image_arch() {
  case "$(uname -m)" in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) uname -m ;;
  esac
}

# add_blob LAYOUT FILE: moves the file to its place and prints `digest size`.
add_blob() {
  local digest size
  digest=$(sha256sum "$2" | cut -d' ' -f1)
  size=$(stat -c %s "$2")
  mv "$2" "$1/blobs/sha256/$digest"
  echo "$digest $size"
}

plain_tar() {
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$1" -cf "$2" .
}

# pack_image NAME ROOTFS 'JSON of the config object' ARCHIVE
pack_image() {
  local name="$1" rootfs="$2" config="$3" archive="$4" work layer config_blob manifest
  work=$(mktemp -d)
  mkdir -p "$work/layout/blobs/sha256"
  plain_tar "$rootfs" "$work/part"
  layer=($(add_blob "$work/layout" "$work/part"))
  printf '{"architecture":"%s","os":"linux","config":%s,"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "$(image_arch)" "$config" "${layer[0]}" >"$work/part"
  config_blob=($(add_blob "$work/layout" "$work/part"))
  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":%s},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:%s","size":%s}]}' \
    "${config_blob[@]}" "${layer[@]}" >"$work/part"
  manifest=($(add_blob "$work/layout" "$work/part"))
  printf '{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%s,"annotations":{"io.containerd.image.name":"%s"}}]}' \
    "${manifest[@]}" "$name" >"$work/layout/index.json"
  printf '{"imageLayoutVersion":"1.0.0"}' >"$work/layout/oci-layout"
  plain_tar "$work/layout" "$archive.part"
  mv "$archive.part" "$archive"
  rm -rf "$work"
}

make_busybox_image() {
  local rootfs applet
  rootfs=$(mktemp -d)
  chmod 755 "$rootfs"
  mkdir -p "$rootfs"/{bin,dev,etc,proc,root,sys,tmp,var/log}
  chmod 1777 "$rootfs/tmp"
  cp "$(command -v busybox)" "$rootfs/bin/busybox"
  for applet in $("$rootfs/bin/busybox" --list); do
    [ "$applet" = busybox ] || ln -s busybox "$rootfs/bin/$applet"
  done
  printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$rootfs/etc/passwd"
  printf 'root:x:0:\nnobody:x:65534:\n' >"$rootfs/etc/group"
  pack_image "$BUSYBOX_IMAGE" "$rootfs" \
    '{"Env":["PATH=/bin"],"Cmd":["/bin/sh"],"WorkingDir":"/"}' "$IMAGE_DIR/busybox.tar"
  rm -rf "$rootfs"
}

make_pause_image() {
  local rootfs
  rootfs=$(mktemp -d)
  chmod 755 "$rootfs"
  g++-14 -O2 -static -s -o "$rootfs/pause" "$GANTRY_ROOT/tools/images/pause.cc"
  pack_image "$PAUSE_IMAGE" "$rootfs" \
    '{"Env":["PATH=/"],"Entrypoint":["/pause"],"WorkingDir":"/"}' "$IMAGE_DIR/pause.tar"
  rm -rf "$rootfs"
}

make_images() {
  make_busybox_image && make_pause_image
}

# Makes the images unless they are there and newer than what they are made of.
provide_images() {
  mkdir -p "$IMAGE_DIR"
  if [ -f "$IMAGE_DIR/pause.tar" ] && [ -f "$IMAGE_DIR/busybox.tar" ] &&
    [ "$IMAGE_DIR/pause.tar" -nt "$GANTRY_ROOT/tools/images/pause.cc" ] &&
    [ "$IMAGE_DIR/pause.tar" -nt "$GANTRY_ROOT/tools/lib/images.sh" ]; then
    return 0
  fi
  step images "images: busybox and pause" make_images
}

# SPDX-License-Identifier: Apache-2.0
# Makes the images that the demo, the tests and the benchmarks run, as OCI
# archives in build/images: busybox.tar, pause.tar and those of wasm_images.sh.
# Needs no image tool and no network: busybox-static, the compiler, tar and
# sha256sum.
. "$GANTRY_ROOT/tools/lib/wasm_images.sh"

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
  chmod 644 "$1/blobs/sha256/$digest"
  echo "$digest $size"
}

plain_tar() {
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$1" -cf "$2" .
}

LAYER_TAR=application/vnd.oci.image.layer.v1.tar

# pack_layers NAME OS ARCHITECTURE 'JSON of the config object' ARCHIVE TYPE=FILE...: an
# image of these layers, whose files are moved. Those of files are in the config's diff_ids.
pack_layers() {
  local name="$1" os="$2" architecture="$3" config="$4" archive="$5" work layer type
  local blob manifest layers='' diffs=''
  shift 5
  work=$(mktemp -d)
  mkdir -p "$work/layout/blobs/sha256"
  for layer in "$@"; do
    type="${layer%%=*}"
    blob=($(add_blob "$work/layout" "${layer#*=}"))
    layers+="${layers:+,}$(printf '{"mediaType":"%s","digest":"sha256:%s","size":%s}' "$type" "${blob[@]}")"
    [ "$type" != "$LAYER_TAR" ] || diffs+="${diffs:+,}\"sha256:${blob[0]}\""
  done
  printf '{"architecture":"%s","os":"%s","config":%s,"rootfs":{"type":"layers","diff_ids":[%s]}}' \
    "$architecture" "$os" "$config" "$diffs" >"$work/part"
  blob=($(add_blob "$work/layout" "$work/part"))
  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":%s},"layers":[%s]}' \
    "${blob[@]}" "$layers" >"$work/part"
  manifest=($(add_blob "$work/layout" "$work/part"))
  printf '{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%s,"annotations":{"io.containerd.image.name":"%s"}}]}' \
    "${manifest[@]}" "$name" >"$work/layout/index.json"
  printf '{"imageLayoutVersion":"1.0.0"}' >"$work/layout/oci-layout"
  plain_tar "$work/layout" "$archive.part"
  mv "$archive.part" "$archive"
  rm -rf "$work"
}

# pack_image NAME ROOTFS 'JSON of the config object' ARCHIVE: for this node.
pack_image() {
  local layer
  layer=$(mktemp)
  plain_tar "$2" "$layer"
  pack_layers "$1" linux "$(image_arch)" "$3" "$4" "$LAYER_TAR=$layer"
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
  make_busybox_image && make_pause_image && make_wasm_images
}

# Makes the images unless they are there and newer than what they are made of.
provide_images() {
  local image source fresh=1
  mkdir -p "$IMAGE_DIR"
  for image in busybox pause "${WASM_IMAGES[@]}"; do
    for source in images/pause.cc lib/images.sh lib/wasm_images.sh; do
      [ "$IMAGE_DIR/$image.tar" -nt "$GANTRY_ROOT/tools/$source" ] || fresh=
    done
  done
  [ -z "$fresh" ] || return 0
  step images "images: busybox, pause and those with wasm" make_images
}

# SPDX-License-Identifier: Apache-2.0
# Images with a WebAssembly module, in each of the forms that are in use and one that is not.
# All have the same one, which prints "hello from wasm". Part of images.sh.

# build/images/NAME.tar is the image docker.io/library/NAME:gantry. To be imported for all
# platforms: `ctr images import --all-platforms`.
WASM_IMAGES=(wasm-file wasm-layer wasm-component wasm-content wasm-both wasm-unknown)

# wasm_hello FILE: a core module, section by section. In its memory: at 0 where the text begins
# and how long it is, as fd_write wants it, at 16 the text.
wasm_hello() {
  {
    printf '\x00asm\x01\x00\x00\x00'
    # Types: (i32 i32 i32 i32) -> i32, () -> ().
    printf '\x01\x0c\x02\x60\x04\x7f\x7f\x7f\x7f\x01\x7f\x60\x00\x00'
    # Imports: function 0.
    printf '\x02\x23\x01\x16wasi_snapshot_preview1\x08fd_write\x00\x00'
    # Function 1 is of type 1; one memory of a page.
    printf '\x03\x02\x01\x01\x05\x03\x01\x00\x01'
    # Exports: the memory, and function 1 as _start.
    printf '\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x01'
    # fd_write(1, 0, 1, 8), whose result is dropped.
    printf '\x0a\x0f\x01\x0d\x00\x41\x01\x41\x00\x41\x01\x41\x08\x10\x00\x1a\x0b'
    printf '\x0b\x26\x01\x00\x41\x00\x0b\x20\x10\x00\x00\x00\x10\x00\x00\x00'
    printf '\x00\x00\x00\x00\x00\x00\x00\x00hello from wasm\n'
  } >"$1"
}

# pack_wasm NAME OS [TYPE=FILE...]. With a config of its own: CRI knows an image by the digest of
# that, and where no layer is in its diff_ids nothing else tells two of them apart.
pack_wasm() {
  local name="$1" os="$2"
  shift 2
  pack_layers "docker.io/library/$name:gantry" "$os" wasm \
    "{\"Entrypoint\":[\"/hello.wasm\"],\"WorkingDir\":\"/\",\"Labels\":{\"name\":\"$name\"}}" "$IMAGE_DIR/$name.tar" "$@"
}

# pack_wasm_layer NAME TYPE: the module as the only layer.
pack_wasm_layer() {
  local layer
  layer=$(mktemp)
  wasm_hello "$layer"
  pack_wasm "$1" wasip1 "$2=$layer"
}

make_wasm_images() {
  local rootfs layer module
  rootfs=$(mktemp -d)
  layer=$(mktemp)
  module=$(mktemp)
  chmod 755 "$rootfs"

  wasm_hello "$rootfs/hello.wasm"
  chmod 755 "$rootfs/hello.wasm"
  plain_tar "$rootfs" "$layer"
  pack_wasm wasm-file wasi "$LAYER_TAR=$layer"

  pack_wasm_layer wasm-layer application/wasm
  pack_wasm_layer wasm-component application/vnd.bytecodealliance.wasm.component.layer.v0+wasm
  pack_wasm_layer wasm-content application/vnd.wasm.content.layer.v1+wasm
  pack_wasm_layer wasm-unknown application/vnd.example.module.v1+wasm

  # Files, and beside them the module.
  rm "$rootfs/hello.wasm"
  mkdir "$rootfs/data"
  echo 'a file of the image' >"$rootfs/data/file"
  wasm_hello "$module"
  plain_tar "$rootfs" "$layer"
  pack_wasm wasm-both wasip1 "$LAYER_TAR=$layer" "application/wasm=$module"
  rm -rf "$rootfs"
}

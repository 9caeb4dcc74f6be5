# SPDX-License-Identifier: Apache-2.0
# rust-vmm's vhost-device-vsock, which the rows vmm-vsock-* of ./run bench have for a peer and
# nothing else needs: Debian has no package of it. Made once for all clones, of the crate's own
# Cargo.lock. Source it after lib/rust.sh, do not run it.
VHOST_DEVICE_VSOCK=0.3.0

vhost_device_vsock_folder() {
  printf '%s/vhost-device-vsock/%s-%s' "$RUST_CACHE" "$VHOST_DEVICE_VSOCK" \
    "$(rust_toolchain_key "$RUST_CACHE/vhost-device-vsock")"
}

# make_vhost_device_vsock FOLDER
make_vhost_device_vsock() {
  rm -rf "$1.part"
  RUSTFLAGS='' "$CARGO" install --locked vhost-device-vsock --version "$VHOST_DEVICE_VSOCK" \
    --jobs "${GANTRY_CARGO_JOBS:-2}" --no-track --root "$1.part" --target-dir "$1.part/target" &&
    rm -rf "$1.part/target" && mv "$1.part" "$1"
}

# provide_vhost_device_vsock: says where it is, in GANTRY_VMM_VHOST_DEVICE_VSOCK, unless whoever
# calls did. Status: 1 where it cannot be made.
provide_vhost_device_vsock() {
  local folder status=0
  [ -z "${GANTRY_VMM_VHOST_DEVICE_VSOCK:-}" ] || return 0
  [ -x "$CARGO" ] && [ -x "$RUSTC" ] || return 1
  folder=$(vhost_device_vsock_folder)
  mkdir -p "$(dirname "$folder")"
  # One at a time: the second of two takes what the first made.
  exec 9>"$(dirname "$folder")/lock"
  flock 9
  [ -x "$folder/bin/vhost-device-vsock" ] ||
    step vhost-device-vsock "vhost-device-vsock $VHOST_DEVICE_VSOCK from crates.io" \
      make_vhost_device_vsock "$folder" || status=1
  exec 9>&-
  [ "$status" -eq 0 ] || return 1
  export GANTRY_VMM_VHOST_DEVICE_VSOCK="$folder/bin/vhost-device-vsock"
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./run bench [-d] [ROW...]: builds, measures gantry against the stock shim of
# the same containerd, with gVisor against runsc's command line, with WebAssembly against
# crun and WasmEdge under it, and virtual machines against what they stand on, prints the table and
# writes build/bench.json; with row names, just these. -d also puts the table into
# docs/performance.md and draws docs/plots of it. GANTRY_BENCH_ROUNDS says how often things are repeated (30).
# GANTRY_VMM_VHOST_DEVICE_VSOCK names a vhost-device-vsock for vmm-vsock-*; else one is made.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
. "$GANTRY_ROOT/tools/lib/build.sh"
. "$GANTRY_ROOT/tools/lib/images.sh"
. "$GANTRY_ROOT/tools/lib/containerds.sh"
. "$GANTRY_ROOT/tools/lib/runscs.sh"
. "$GANTRY_ROOT/tools/lib/bench.sh"
. "$GANTRY_ROOT/tools/lib/plots.sh"
. "$GANTRY_ROOT/tools/lib/cgroups.sh"
. "$GANTRY_ROOT/tools/lib/vmm_image.sh"
. "$GANTRY_ROOT/tools/lib/rust.sh"
. "$GANTRY_ROOT/tools/lib/vhost_device_vsock.sh"

to_docs=
if [ "${1:-}" = -d ]; then
  to_docs=1
  shift
fi
need_root bench
vmm=()
if bench_wants vmm- "$@"; then
  vmm=(gantry_vmm gantryctl vmm_image_programs vmm_bare_boot vmm_vsock_bench)
fi
"$GANTRY_ROOT/tools/setup" build kit bench ${vmm[*]:+vmm}
claim_controllers
wasm=(gantry_wasm wasm_bench_guests)
wasm_is_off release && wasm=()
build_preset release gantryd gantry-keeper containerd-shim-gantry-v1 gantry_runc gantry_gvisor \
  "${wasm[@]}" "${vmm[@]}" bench cri
provide_images
[ -z "${vmm[*]}" ] || provide_vmm_image || say "no guest image: the rows of virtual machines are skipped"
bench_wants vmm-vsock- "$@" && { provide_vhost_device_vsock || say "no vhost-device-vsock: vmm-vsock-* is skipped"; }
[ -z "${wasm[*]}" ] || provide_guest_image

say "measuring; anything else that runs on this machine shows in the figures"
begin=$(cut -d' ' -f1 /proc/loadavg)
status=0
GANTRY_BENCH_OUT="$GANTRY_ROOT/build" "$GANTRY_ROOT/build/release/tests/bench" "$@" || status=$?
bench_machine "$begin" >"$GANTRY_ROOT/build/bench-machine.txt"
say
cat "$GANTRY_ROOT/build/bench-machine.txt"
if [ -n "$to_docs" ]; then
  bench_into "$GANTRY_ROOT/docs/performance.md"
  bench_plots "$GANTRY_ROOT/build" "$GANTRY_ROOT/docs/plots"
fi
exit "$status"

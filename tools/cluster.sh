#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./run cluster [-d] [-i] [-k] [-c COLUMN,...] [ROW...]: a Kubernetes of one node on this machine, with
# gantry below its containerd, and what a cluster asks of a runtime, tried with each backend. The
# table goes to build/cluster.md, with -d into docs/kubernetes.md, too. -c has some of the columns run
# only, names of rows some of the rows; the table has the other cells as they were found before. -i
# gives a shell on that cluster instead. -k: the node has no gantry, and the Helm chart puts it there
# and takes it off again.
#
# All of it is in namespaces of its own (mounts, network, processes, cgroups), whose first process is
# tools/cluster/inside: when that ends, so does everything. Files are in build/cluster.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
. "$GANTRY_ROOT/tools/lib/build.sh"
. "$GANTRY_ROOT/tools/lib/bench.sh"
. "$GANTRY_ROOT/tools/lib/images.sh"
. "$GANTRY_ROOT/tools/lib/containerds.sh"
. "$GANTRY_ROOT/tools/lib/runscs.sh"
. "$GANTRY_ROOT/tools/lib/kubernetes.sh"
. "$GANTRY_ROOT/tools/lib/vmm_image.sh"
. "$GANTRY_ROOT/tools/lib/helm.sh"
. "$GANTRY_ROOT/tools/lib/cluster.sh"
. "$GANTRY_ROOT/tools/lib/cluster_table.sh"

what=rows to_docs= columns=
while getopts dikc: option; do
  case "$option" in
    d) to_docs=1 ;;
    i) what=shell ;;
    k) what=installer ;;
    c) columns="${OPTARG//,/ }" ;;
    *) die "./run cluster [-d] [-i] [-k] [-c COLUMN,...] [ROW...]" ;;
  esac
done
shift $((OPTIND - 1))
[ "$what" = installer ] || columns="${columns:-${CLUSTER_COLUMNS[*]}}"
for column in $columns; do
  [[ " ${CLUSTER_COLUMNS[*]} " = *" $column "* ]] || die "no column '$column': ${CLUSTER_COLUMNS[*]}"
done
[ "$#" -gt 0 ] || set -- "${CLUSTER_ROWS[@]}"
for row in "$@"; do
  [[ " ${CLUSTER_ROWS[*]} " = *" $row "* ]] || die "no row '$row': ${CLUSTER_ROWS[*]}"
done

need_root cluster
targets=(gantryd gantry-keeper containerd-shim-gantry-v1 gantryctl gantry-grpc gantry_runc)
parts=(build cluster)
for column in $columns; do
  case "$column" in
    gvisor) targets+=(gantry_gvisor) ;;
    wasm) wasm_is_off release && die "gantry is configured without wasm" || targets+=(gantry_wasm) ;;
    vmm)
      targets+=(gantry_vmm vmm_image_programs)
      parts+=(vmm) ;;
  esac
done
"$GANTRY_ROOT/tools/setup" "${parts[@]}"
build_preset release "${targets[@]}"
provide_images
if [ "$what" = installer ]; then
  provide_helm
  "$GANTRY_ROOT/tools/k8s-image.sh"
fi
[[ " $columns " != *" vmm "* ]] || provide_vmm_image || die "no guest image for the column vmm"

exec 9>"$GANTRY_ROOT/build/cluster.lock"
flock -n 9 || die "another ./run cluster of this folder is running"
trap cluster_end EXIT
trap 'exit 130' INT TERM HUP
cluster_prepare
[ "$columns $*" != "${CLUSTER_COLUMNS[*]} ${CLUSTER_ROWS[*]}" ] || rm -rf "$RESULT_DIR"
status=0
if [ "$what" = shell ]; then
  (cluster_inside shell "$columns") || status=$?
  exit "$status"
fi
# In the background, so that a signal is not left until it ends.
cluster_inside "$what" "$columns" "$@" </dev/null &
wait $! || status=$?
[ -z "$to_docs" ] || [ "$what" != rows ] || [ "$status" -gt 1 ] || cluster_into "$GANTRY_ROOT/docs/kubernetes.md"
exit "$status"

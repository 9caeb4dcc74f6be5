#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./run node [-i | -b [ROW...]]: tests of gantry as installed on a node with systemd and
# cgroup v2, in a guest that is made for it. -i gives a shell on that node instead; it
# ends with `poweroff`. -b measures rows of ./run bench there instead: without names,
# those that no other node has; GANTRY_BENCH_ROUNDS says how often things are repeated.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
. "$GANTRY_ROOT/tools/lib/suites.sh"
. "$GANTRY_ROOT/tools/lib/node_suite.sh"

[ "$#" -eq 0 ] || [ "$*" = -i ] || [ "$1" = -b ] ||
  die "'$*' is not understood: ./run node [-i | -b [ROW...]]"
need_root node
"$GANTRY_ROOT/tools/setup" build unit node
if [ "${1:-}" = -i ]; then
  provide_guest
  say "  --  a shell on the node; 'poweroff' ends it"
  guest_command
  "${GUEST_COMMAND[@]}"
  exit 0
fi
if [ "${1:-}" = -b ]; then
  shift
  node_bench "$@"
  exit
fi
begin_results
# Each by what its programs are called.
run_one() {
  local begin
  begin=$(date +%s)
  "$1_suite"
  demand_a_pass "$1"
  suite_line "$1" $(($(date +%s) - begin))
}
! node_wants "${NODE_RUNS[@]}" || run_one node
if node_wants packages; then
  "$GANTRY_ROOT/tools/setup" packages
  run_one packages
fi
summary

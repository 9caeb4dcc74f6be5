#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/bench_pair.sh COMMIT [ROW...]: the rows of ./run bench at COMMIT and now, both
# built here and measured in turns, so that what the machine does meanwhile meets both.
# Prints for each row gantry's figure and its ratio to the peer of the same run before and
# after, the medians of $GANTRY_PAIR_TIMES runs (3), and the sizes of the programs' text.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
. "$GANTRY_ROOT/tools/lib/build.sh"
. "$GANTRY_ROOT/tools/lib/images.sh"
. "$GANTRY_ROOT/tools/lib/containerds.sh"
. "$GANTRY_ROOT/tools/lib/runscs.sh"
. "$GANTRY_ROOT/tools/lib/bench.sh"
. "$GANTRY_ROOT/tools/lib/cgroups.sh"

TARGETS=(gantryd gantry-keeper containerd-shim-gantry-v1 gantryctl gantry_runc gantry_gvisor bench cri)
PROGRAMS=(bin/gantryd bin/gantry-keeper bin/containerd-shim-gantry-v1 bin/plugins/libgantry_runc.so
  bin/plugins/libgantry_gvisor.so)
BEFORE="$GANTRY_ROOT/build/pair/tree"
OUT="$GANTRY_ROOT/build/pair/out"

[ "$#" -gt 0 ] || die "usage: tools/bench_pair.sh COMMIT [ROW...]"
need_root bench_pair
commit=$(git -C "$GANTRY_ROOT" rev-parse --verify "$1^{commit}")
shift
"$GANTRY_ROOT/tools/setup" build kit bench
claim_controllers
provide_images

# The tree of COMMIT, once for each commit.
if [ "$(git -C "$BEFORE" rev-parse HEAD 2>/dev/null)" != "$commit" ]; then
  git -C "$GANTRY_ROOT" worktree remove --force "$BEFORE" 2>/dev/null || true
  git -C "$GANTRY_ROOT" worktree prune
  git -C "$GANTRY_ROOT" worktree add --quiet --detach "$BEFORE" "$commit"
fi
build_preset release "${TARGETS[@]}"
step build-before "build of ${commit:0:9}" sh -c \
  'cmake -S "$0" --preset release && exec ninja -j "$1" -C "$0/build/release" $2' \
  "$BEFORE" "$(build_jobs)" "${TARGETS[*]}"

# measure NAME TREE ROW...
measure() {
  local out="$OUT/$1" tree="$2"
  shift 2
  rm -rf "$out"
  mkdir -p "$out"
  # How a program lies in the page cache decides how much of it a fault maps (PSS), and that
  # depends on how it came there, written by a linker or read: now both are read.
  sync
  echo 1 >/proc/sys/vm/drop_caches 2>/dev/null || true
  # A row that misses its target is a figure like the others.
  GANTRY_BENCH_OUT="$out" "$tree/build/release/tests/bench" "$@" >"$out/log" 2>&1 || true
  [ -s "$out/bench.json" ] || die "no figures: $out/log"
}

# The programs of either tree look for the images in their own.
ln -sfn "$GANTRY_ROOT/build/images" "$BEFORE/build/images"

times="${GANTRY_PAIR_TIMES:-3}"
for ((i = 1; i <= times; i++)); do
  say "  $i of $times"
  measure "before-$i" "$BEFORE" "$@"
  measure "after-$i" "$GANTRY_ROOT" "$@"
done

# figures NAME: `NAME ROW OURS RATIO UNIT` of each of its runs; - where there is none.
figures() {
  local i
  for ((i = 1; i <= times; i++)); do
    bench_cells "$OUT/$1-$i/bench.json" id ours ratio unit |
      awk -F '\t' -v name="$1" '{ print name, $1, $2 == "" ? "-" : $2, $3 == "" ? "-" : $3, $4 }'
  done
}

{
  figures before
  figures after
} | awk '
  function median(list, n, v, i, j, t) {
    n = split(list, v, " ")
    for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (v[j] + 0 < v[i] + 0) { t = v[i]; v[i] = v[j]; v[j] = t }
    return n == 0 ? "-" : n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
  }
  function of(a, b) { return a == "-" || b == "-" || a == 0 ? "-" : sprintf("%.3f", b / a) }
  function number(v) { return v == "-" ? v : sprintf("%.4g", v) }
  !($2 in seen) { seen[$2] = 1; order[++rows] = $2; unit[$2] = $5 }
  $3 != "-" { ours[$1, $2] = ours[$1, $2] " " $3 }
  $4 != "-" { ratio[$1, $2] = ratio[$1, $2] " " $4 }
  END {
    print "| row | before | after | unit | after/before | ratio before | ratio after | after/before |"
    print "|---|--:|--:|---|--:|--:|--:|--:|"
    for (i = 1; i <= rows; i++) {
      row = order[i]
      b = median(ours["before", row]); a = median(ours["after", row])
      rb = median(ratio["before", row]); ra = median(ratio["after", row])
      printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", row, number(b), number(a), unit[row],
        of(b, a), number(rb), number(ra), of(rb, ra)
    }
  }'
say
for program in "${PROGRAMS[@]}"; do
  printf '%-40s text %s before, %s after\n' "$(basename "$program")" \
    "$(size "$BEFORE/build/release/$program" | awk 'NR == 2 { print $1 }')" \
    "$(size "$GANTRY_ROOT/build/release/$program" | awk 'NR == 2 { print $1 }')"
done

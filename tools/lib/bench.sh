# SPDX-License-Identifier: Apache-2.0
# What tools/bench.sh needs beside the build, and does with the results: the machine's
# description and the tables of docs/performance.md. bench.json and bench-parts.json have
# one object on each line, so awk is enough to read them.

# wasm_is_off PRESET: configured as -DGANTRY_WASM=OFF.
wasm_is_off() {
  grep -qsiE '^GANTRY_WASM:[A-Z]+=(OFF|NO|FALSE|0|N)$' "$GANTRY_ROOT/build/$1/CMakeCache.txt"
}

# The image that wasm_lab.h names: a module in a root of its own, for any runtime.
make_guest_image() {
  local rootfs
  rootfs=$(mktemp -d)
  chmod 755 "$rootfs"
  cp "$GANTRY_ROOT/build/release/guests/tool.wasm" "$rootfs/tool.wasm"
  chmod 755 "$rootfs/tool.wasm"
  pack_image docker.io/library/wasm-tool:gantry "$rootfs" \
    '{"Env":["PATH=/"],"Entrypoint":["/tool.wasm"],"WorkingDir":"/"}' "$IMAGE_DIR/wasm-tool.tar"
  rm -rf "$rootfs"
}

provide_guest_image() {
  [ "$IMAGE_DIR/wasm-tool.tar" -nt "$GANTRY_ROOT/build/release/guests/tool.wasm" ] ||
    step guest-image "image: wasm-tool" make_guest_image
}

# bench_wants BEGIN [ROW...]: rows whose names begin so are among these, or all are wanted.
bench_wants() {
  local begin="$1"
  shift
  [ "$#" -eq 0 ] || printf '%s\n' "$@" | grep -q "^$begin"
}

# bench_machine LOAD_BEFORE: on what, with what and when it was measured.
bench_machine() {
  local commit
  commit=$(git -c safe.directory='*' -C "$GANTRY_ROOT" rev-parse --short HEAD 2>/dev/null || echo unknown)
  printf 'Measured %s at commit %s.\n' "$(date -u +%Y-%m-%d)" "$commit"
  printf '%s x %s, %s GiB; Linux %s, %s; load %s before, %s after.\n' "$(nproc)" \
    "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" \
    "$(awk '/^MemTotal:/ { printf "%.0f", $2 / 1048576 }' /proc/meminfo)" "$(uname -r)" \
    "$([ -e /sys/fs/cgroup/cgroup.controllers ] && echo 'cgroup v2' || echo 'cgroup v1')" \
    "$1" "$(cut -d' ' -f1 /proc/loadavg)"
  printf 'containerd %s, %s, %s, WasmEdge %s, runsc %s and %s; %s rounds.\n' \
    "$GANTRY_E2E_CONTAINERD" "$(runc --version | sed -n '1s/ version / /p')" \
    "$(crun --version | sed -n '1s/ version / /p')" \
    "$(dpkg-query -W -f '${Version}' libwasmedge0 2>/dev/null || echo none)" \
    "$RUNSC_MODULE" "$RUNSC_DEBIAN" "${GANTRY_BENCH_ROUNDS:-30}"
}

# bench_cells FILE KEY...: the values of these keys, one line for each object,
# separated by tabs; null is empty.
bench_cells() {
  local file="$1"
  shift
  awk -v keys="$*" '
    function value(line, key, at, rest) {
      at = index(line, "\"" key "\":")
      if (!at) return ""
      rest = substr(line, at + length(key) + 3)
      if (substr(rest, 1, 1) == "\"") {
        rest = substr(rest, 2)
        return substr(rest, 1, index(rest, "\"") - 1)
      }
      sub(/[,}].*/, "", rest)
      return rest == "null" ? "" : rest
    }
    /^\{/ {
      n = split(keys, key, " ")
      for (i = 1; i <= n; i++) printf "%s%s", value($0, key[i]), i < n ? "\t" : "\n"
    }' "$file"
}

# bench_rows KIND FILE KEY...: the cells of the rows of gVisor (gvisor), of WebAssembly (wasm), of
# machines (vmm), or of all others (stock); their names come first.
bench_rows() {
  local kind="$1"
  shift
  bench_cells "$@" | awk -v kind="$kind" '
    { of = /^gvisor-/ ? "gvisor" : /^wasm-/ ? "wasm" : /^vmm-/ ? "vmm" : "stock" }
    of == kind { print }'
}

# bench_tables KIND: both tables in Markdown, numbers with three digits that matter. What
# needs another host is not among them: docs/performance.md has it apart.
bench_tables() {
  local kind="$1" peer=stock parts
  [ "$kind" != gvisor ] || peer=runsc
  [ "$kind" != wasm ] || peer='crun, WasmEdge'
  [ "$kind" != vmm ] || peer='what it stands on'
  printf '| row | gantry | %s | unit | ratio | target | | what |\n|---|--:|--:|---|--:|---|---|---|\n' "$peer"
  bench_rows "$kind" "$GANTRY_ROOT/build/bench.json" id ours peer unit ratio target met what |
    awk -F '\t' '
      function number(v) {
        if (v == "") return ""
        return sprintf(v >= 100 || v == 0 ? "%.0f" : v >= 10 ? "%.1f" : v >= 1 ? "%.2f" : "%.3f", v)
      }
      $8 ~ /^not measured here: / { next }
      {
        verdict = $7 == "true" ? "met" : $7 == "false" ? "**missed**" : ""
        printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", $1, number($2), number($3), $4,
          number($5), $6, verdict, $8
      }'
  parts=$(bench_rows "$kind" "$GANTRY_ROOT/build/bench-parts.json" row part ours peer)
  [ -n "$parts" ] || return 0
  printf '\nWhere the time of a row goes (medians of the parts, ms):\n\n'
  printf '| row | part | gantry | %s |\n|---|---|--:|--:|\n' "$peer"
  awk -F '\t' '{ printf "| %s | %s | %.2f | %.2f |\n", $1, $2, $3, $4 }' <<<"$parts"
}

# bench_into FILE: replaces what is between the two marks of each kind in it, of a kind of
# which nothing was measured not.
bench_into() {
  local text kind
  text=$(mktemp)
  for kind in stock gvisor wasm vmm; do
    [ -n "$(bench_rows "$kind" "$GANTRY_ROOT/build/bench.json" id)" ] || continue
    {
      sed 's/$/  /' "$GANTRY_ROOT/build/bench-machine.txt"
      echo
      bench_tables "$kind"
    } >"$text"
    awk -v table="$text" -v kind="$kind" '
      index($0, "<!-- " kind " begin -->") { print; while ((getline line < table) > 0) print line; inside = 1 }
      index($0, "<!-- " kind " end -->") { inside = 0 }
      !inside && !index($0, "<!-- " kind " begin -->") { print }' "$1" >"$text.new"
    cat "$text.new" >"$1"
  done
  rm -f "$text" "$text.new"
}

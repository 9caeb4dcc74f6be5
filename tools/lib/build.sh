# SPDX-License-Identifier: Apache-2.0
# Configuring and building, for the scripts in tools/.

# What of the tree may be built at once: one job for each 1.5 GB and processor.
build_jobs() {
  local memory_kb jobs
  memory_kb=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
  jobs=$((memory_kb / 1500000))
  [ "$jobs" -ge 1 ] || jobs=1
  [ "$jobs" -le "$(nproc)" ] || jobs=$(nproc)
  echo "$jobs"
}

# build_preset PRESET [TARGET...]: build/PRESET, with progress on a terminal.
build_preset() {
  local preset="$1" folder="$GANTRY_ROOT/build/$1"
  shift
  export CCACHE_DIR="${CCACHE_DIR:-$GANTRY_CACHE/ccache}" CCACHE_MAXSIZE="${CCACHE_MAXSIZE:-5G}"
  step "configure-$preset" "configure $preset" \
    cmake -S "$GANTRY_ROOT" --preset "$preset" || return
  step "build-$preset" "build $preset" ninja -j "$(build_jobs)" -C "$folder" "$@"
}

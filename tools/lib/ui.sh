# SPDX-License-Identifier: Apache-2.0
# Shared by the scripts in tools/: progress on the terminal, one log file
# per step, the tail of that log when a step fails. Source it, do not run it.

GANTRY_ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
export HOME="${HOME:-/root}"
if [ -z "${GANTRY_CACHE:-}" ]; then
  GANTRY_CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/gantry"
  mkdir -p "$GANTRY_CACHE" 2>/dev/null && [ -w "$GANTRY_CACHE" ] ||
    GANTRY_CACHE="$GANTRY_ROOT/build/cache"
fi
export GANTRY_CACHE
LOG_DIR="$GANTRY_ROOT/build/logs"
mkdir -p "$GANTRY_CACHE" "$LOG_DIR"

say() { printf '%s\n' "$*"; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# step NAME TEXT COMMAND...: runs the command with its output in
# build/logs/NAME.log. One line says how long it took; a failure shows the
# log's end, leaves the log's name in FAILED_STEP, and returns the command's status.
step() {
  local name="$1" text="$2" log="$LOG_DIR/$1.log" begin status=0
  shift 2
  begin=$(date +%s)
  [ -t 1 ] && printf '  ... %s\r' "$text"
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ "$status" -eq 0 ]; then
    printf '  ok  %s (%d s)\n' "$text" "$(($(date +%s) - begin))"
    return 0
  fi
  printf '  --  %s FAILED with status %d after %d s; the end of %s:\n' \
    "$text" "$status" "$(($(date +%s) - begin))" "$log"
  tail -n 60 "$log" | sed 's/^/      /'
  FAILED_STEP="$log"
  return "$status"
}

need_root() {
  [ "$(id -u)" -eq 0 ] || die "'$1' needs root: run it with sudo"
}

# retry N COMMAND...: for what reaches over the network.
retry() {
  local left="$1"
  shift
  until "$@"; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || return 1
    say "failed, $left more tries: $*"
    sleep 5
  done
}

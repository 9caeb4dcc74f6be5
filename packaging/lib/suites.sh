# SPDX-License-Identifier: Apache-2.0
# Running GoogleTest programs and counting what they say.
#
# Each test ends up as one line in $RESULTS: passed|failed|skipped SUITE TEST.
# A program that ends without its closing line (a crash, a time-out) is one
# more failed test of its suite.

RESULTS="$GANTRY_ROOT/build/logs/results"
# What the summary shows of what failed.
FAILURES="$GANTRY_ROOT/build/logs/failures"

begin_results() {
  rm -f "$GANTRY_ROOT"/build/logs/suite-*
  : >"$RESULTS"
  : >"$FAILURES"
}

record() { printf '%s %s %s\n' "$1" "$2" "$3" >>"$RESULTS"; }

# count_log SUITE PROGRAM LOG STATUS: reads GoogleTest's own lines.
count_log() {
  awk -v suite="$1" -v program="$2" -v status="$4" '
    function word(line) { sub(/^\[[^]]*\] /, "", line); sub(/[ ,].*/, "", line); return line }
    /^\[==========\] [0-9]+ tests? from .* ran\./ { closed = 1 }
    /^\[  PASSED  \]/ { closed = 1 }
    /^\[       OK \] / { print "passed", suite, word($0) }
    /^\[  SKIPPED \] .* \([0-9]+ ms\)$/ { print "skipped", suite, word($0) }
    /^\[  FAILED  \] .* \([0-9]+ ms\)$/ { print "failed", suite, word($0); failed = 1 }
    END {
      if (!closed || (status != 0 && !failed))
        print "failed", suite, program "(ended-with-status-" status ")"
    }' "$3" >"$3.results"
}

# tell_failed SUITE WHAT LOG: says so at once, and keeps for the summary what standard
# input shows of it.
tell_failed() {
  local said="  --  $1: $2; $3:"
  say "$said"
  { printf '%s\n' "$said" && cat; } | flock "$FAILURES.lock" sh -c 'cat >>"$1"' - "$FAILURES"
}

# show_end LOG: its last lines, as part of a message.
show_end() { tail -n 40 "$1" | sed 's/^/      /'; }

# show_failures LOG: what each failed test printed: its first 12 lines, its last 40, and
# the last 40 of each log that it shows behind a line `--- PATH:`.
show_failures() {
  awk '
    function show(end, i, from, last) {
      for (from = 0; from < end; from = last) {
        for (last = from + 1; last < end && lines[last] !~ /^--- \/.*:$/; last++) { }
        for (i = from; i < last; i++)
          if ((from == 0 && i < 12) || i == from || i >= last - 40)
            print "      " substr(lines[i], 1, 1500)
          else if (i == last - 41) print "      ..."
      }
    }
    /^\[ RUN      \]/ { n = 0 }
    { lines[n++] = $0 }
    /^\[  FAILED  \] .* \([0-9]+ ms\)$/ { show(n); n = 0 }
    /^\[       OK \]|^\[  SKIPPED \]/ { n = 0 }
    /^\[==========\] .* ran\./ { n = 0; exit }
    END { if (n > 0) show(n) }' "$1"
}

# run_gtest SUITE PROGRAM LOG SECONDS [ARGUMENT...]
run_gtest() {
  local suite="$1" program="$2" log="$3" seconds="$4" status=0
  shift 4
  timeout -k 20 "$seconds" "$program" "$@" >"$log" 2>&1 </dev/null || status=$?
  count_gtest "$suite" "$(basename "$program")" "$log" "$status"
}

# count_gtest SUITE PROGRAM LOG STATUS: takes the program's tests into the results, and
# says that some failed; summary shows them.
count_gtest() {
  local suite="$1" program="$2" log="$3" status="$4"
  count_log "$suite" "$program" "$log" "$status"
  if [ "$status" -ne 0 ]; then
    show_failures "$log" | tell_failed "$suite" "$program ended with status $status" "$log"
  fi
  flock "$RESULTS.lock" sh -c 'cat "$1" >>"$2"' - "$log.results" "$RESULTS"
  return 0
}

count_of() { awk -v kind="$1" -v suite="${2:-}" '$1 == kind && (suite == "" || $2 == suite)' "$RESULTS" | wc -l; }

# demand_a_pass SUITE: a suite in which no test passed has shown nothing.
demand_a_pass() {
  [ "$(count_of passed "$1")" -gt 0 ] || [ "$(count_of failed "$1")" -gt 0 ] ||
    record failed "$1" no-test-passed
}

# suite_line SUITE SECONDS: one line on how it went.
suite_line() {
  local mark=ok
  [ "$(count_of failed "$1")" -eq 0 ] || mark=--
  printf '  %s  %s: %d passed, %d failed, %d skipped (%d s)\n' "$mark" "$1" \
    "$(count_of passed "$1")" "$(count_of failed "$1")" "$(count_of skipped "$1")" "$2"
}

# skip_reasons: each reason that a log gives for skipping, with its count;
# nothing when no test was skipped. (The guide's rules are no tests.)
skip_reasons() {
  find "$GANTRY_ROOT/build/logs" -name 'suite-*.log' ! -name 'suite-kit-guide.log' -exec cat {} + |
    awk 'reason && NF { print; reason = 0 } /: Skipped$/ { reason = 1 }
      / +not supported \(/ { sub(/^[^(]*/, ""); gsub(/\47[^\47]*\47/, "...") ; print "not supported " $0 }' |
    sort | uniq -c
}

# summary: the last lines of a run, what failed behind what was skipped; fails when a test
# did.
summary() {
  if [ "$(count_of skipped)" -gt 0 ]; then
    say "skipped, with the reasons:"
    skip_reasons
  fi
  if [ "$(count_of failed)" -gt 0 ]; then
    cat "$FAILURES"
    say "failed:"
    awk '$1 == "failed" { print "  " $2, $3 }' "$RESULTS"
  fi
  printf 'summary: %d passed, %d failed, %d skipped\n' \
    "$(count_of passed)" "$(count_of failed)" "$(count_of skipped)"
  [ "$(count_of failed)" -eq 0 ] && [ "$(count_of passed)" -gt 0 ]
}

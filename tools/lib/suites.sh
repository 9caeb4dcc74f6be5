# SPDX-License-Identifier: Apache-2.0
# Running GoogleTest programs and counting what they say.
#
# Each test ends up as one line in $RESULTS: passed|failed|flaky|skipped SUITE TEST [MS].
# A failed test is run once more when its suite has ended, and is flaky when it passes
# then: docs/flaky.md. A program that ends without its closing line in none of its tests
# is one more failed test of its suite.
. "$GANTRY_ROOT/tools/lib/gtest.sh"
. "$GANTRY_ROOT/tools/lib/junit.sh"

RESULTS="$GANTRY_ROOT/build/logs/results"
# What the summary shows of what failed, and of what failed only once.
FAILURES="$GANTRY_ROOT/build/logs/failures"
FLAKES="$GANTRY_ROOT/build/logs/flakes"

begin_results() {
  rm -f "$GANTRY_ROOT"/build/logs/{suite,failure}-*
  : >"$RESULTS"
  : >"$FAILURES"
  : >"$FLAKES"
}

record() { printf '%s %s %s\n' "$1" "$2" "$3" >>"$RESULTS"; }

# record_step SUITE WHAT: a step has failed that is no test, and with it WHAT of the suite.
record_step() {
  record failed "$1" "$2"
  [ -z "${FAILED_STEP:-}" ] || show_end "$FAILED_STEP" >"$(failure_file "$1" "$2")"
}

# tell_failed SUITE WHAT LOG: says so at once, and keeps for the summary what standard
# input shows of it. tell_flaky is the same for what passed when it was run again.
tell_failed() { tell -- "$FAILURES" "$@"; }

tell_flaky() { tell '~~' "$FLAKES" "$@"; }

tell() {
  local said="  $1  $3: $4; $5:"
  say "$said"
  # shellcheck disable=SC2016
  { printf '%s\n' "$said" && cat; } | flock "$2.lock" sh -c 'cat >>"$1"' - "$2"
}

# show_end LOG: its last lines, as part of a message.
show_end() { tail -n 40 "$1" | sed 's/^/      /'; }

# show_failures KIND LOG [TEST]: what each test, or this one, that LOG.results calls failed, or
# flaky, printed when it failed first: its first 12 lines, its last 40, and the last 40 of
# each log that it shows behind a line `--- PATH:`. And what was said outside of tests
# when that is what failed.
show_failures() {
  awk -v kind="$1" -v only="${3:-}" '
    function show(end, i, from, last) {
      for (from = 0; from < end; from = last) {
        for (last = from + 1; last < end && lines[last] !~ /^--- \/.*:$/; last++) { }
        for (i = from; i < last; i++)
          if ((from == 0 && i < 12) || i == from || i >= last - 40)
            print "      " substr(lines[i], 1, 1500)
          else if (i == last - 41) print "      ..."
      }
    }
    function word(line) { sub(/^[^]]*\] /, "", line); sub(/[ ,].*/, "", line); return line }
    NR == FNR {
      if ($1 != kind || (only != "" && $3 != only)) next
      if ($3 ~ /\(/) outside = 1
      else wanted[$3] = 1
      next
    }
    /^\[  AGAIN   \]/ { exit }
    /^\[ RUN      \]/ { n = 0; test = word($0) }
    { lines[n++] = $0 }
    /\[  FAILED  \] .* \([0-9]+ ms\)$/ { if (test in wanted) show(n); n = 0; test = "" }
    /\[       OK \] .* \([0-9]+ ms\)$|\[  SKIPPED \] .* \([0-9]+ ms\)$/ { n = 0; test = "" }
    /^\[==========\] .* ran\./ { n = 0; test = "" }
    /^\[  ENDED   \]/ { if (test == "" ? outside : test in wanted) show(n); n = 0; test = "" }
    END { if (n > 0 && (test == "" ? outside : test in wanted)) show(n) }' "$2.results" "$2"
}

# run_gtest SUITE PROGRAM LOG SECONDS [ARGUMENT...]: a suite of one program.
run_gtest() {
  local suite="$1" program="$2" log="$3" seconds="$4"
  shift 4
  gtest_first "$log" "$seconds" "$program" "$@"
  ! gtest_few_failing "$log" || gtest_again "$log" "$seconds" "$program" "$@"
  count_gtest "$suite" "$(basename "$program")" "$log"
}

# wait_for_turn N: waits until fewer than N of this shell's jobs run.
wait_for_turn() {
  while [ "$(jobs -rp | wc -l)" -ge "$1" ]; do
    wait -n || true
  done
}

# run_gtests SUITE SECONDS PROGRAM...: a suite of several programs, two at a time; then
# what failed, alone.
run_gtests() {
  local suite="$1" seconds="$2" program log logs=() again=
  shift 2
  for program in "$@"; do
    log="$LOG_DIR/suite-$suite-$(basename "$program").log"
    logs+=("$log")
    wait_for_turn 2
    gtest_first "$log" "$seconds" "$program" --gtest_color=no &
  done
  wait
  ! gtest_few_failing "${logs[@]}" || again=1
  for program in "$@"; do
    log="$LOG_DIR/suite-$suite-$(basename "$program").log"
    [ -z "$again" ] || gtest_again "$log" "$seconds" "$program" --gtest_color=no
    count_gtest "$suite" "$(basename "$program")" "$log"
  done
}

# count_gtest SUITE PROGRAM LOG: takes the program's tests into the results, and says
# that some failed; summary shows them.
count_gtest() {
  local suite="$1" program="$2" log="$3" failed kind test
  gtest_results "$suite" "$program" "$log" >"$log.results"
  while read -r kind _ test _; do
    case "$kind" in
      failed | flaky) show_failures "$kind" "$log" "$test" >"$(failure_file "$suite" "$test")" ;;
    esac
  done <"$log.results"
  failed=$(awk '$1 == "failed"' "$log.results" | wc -l)
  if [ "$failed" -gt 0 ]; then
    show_failures failed "$log" | tell_failed "$suite" "$failed failed in $program" "$log"
  fi
  failed=$(awk '$1 == "flaky"' "$log.results" | wc -l)
  if [ "$failed" -gt 0 ]; then
    show_failures flaky "$log" |
      tell_flaky "$suite" "$failed failed in $program and passed when run again" "$log"
  fi
  take_lines "$log.results"
}

# take_lines FILE: its lines are results.
take_lines() {
  # shellcheck disable=SC2016
  flock "$RESULTS.lock" sh -c 'cat "$1" >>"$2"' - "$1" "$RESULTS"
}

count_of() { awk -v kind="$1" -v suite="${2:-}" '$1 == kind && (suite == "" || $2 == suite)' "$RESULTS" | wc -l; }

# demand_a_pass SUITE: a suite in which no test passed has shown nothing.
demand_a_pass() {
  [ "$(count_of passed "$1")" -gt 0 ] || [ "$(count_of failed "$1")" -gt 0 ] ||
    [ "$(count_of flaky "$1")" -gt 0 ] ||
    record failed "$1" no-test-passed
}

# suite_line SUITE SECONDS: one line on how it went.
suite_line() {
  local mark=ok flaky
  flaky=$(count_of flaky "$1")
  [ "$flaky" -eq 0 ] || mark='~~'
  [ "$(count_of failed "$1")" -eq 0 ] || mark=--
  [ "$flaky" -eq 0 ] && flaky= || flaky=", $flaky flaky"
  printf '  %s  %s: %d passed, %d failed, %d skipped%s (%d s)\n' "$mark" "$1" \
    "$(count_of passed "$1")" "$(count_of failed "$1")" "$(count_of skipped "$1")" "$flaky" "$2"
}

# skip_reasons: each reason that a log gives for skipping, with its count;
# nothing when no test was skipped. (The guide's rules are no tests.)
skip_reasons() {
  find "$GANTRY_ROOT/build/logs" -name 'suite-*.log' ! -name 'suite-kit-guide.log' -exec cat {} + |
    awk 'reason && NF { print; reason = 0 } /: Skipped$/ { reason = 1 }
      / +not supported \(/ { sub(/^[^(]*/, ""); gsub(/\47[^\47]*\47/, "...") ; print "not supported " $0 }' |
    sort | uniq -c
}

# list_tests KIND: each of these tests, with the place and the first line of what failed in it
# first; of a step that is no test, its first error.
list_tests() {
  local kind suite test file
  while read -r kind suite test _; do
    [ "$kind" = "$1" ] || continue
    file=$(failure_file "$suite" "$test")
    printf '  %s %s%s\n' "$suite" "$test" "$([ ! -e "$file" ] || first_failure "$file")"
  done <"$RESULTS"
}

# first_failure FILE: `: PLACE WORDS`; `: WORDS`, its first error or else its last line,
# where no test has failed; or nothing.
first_failure() {
  awk '/: Failure$/ {
    sub(/^.*\/tests\//, "tests/"); sub(/^ +/, ""); sub(/: Failure$/, ""); place = $0
    getline; words = place " " substr($0, match($0, /[^ ]/), 200); exit
  }
  NF && !found { words = substr($0, match($0, /[^ ]/), 200); found = /(error|ERROR)(:|\[)/ }
  END { if (words != "") print ": " words }' "$1"
}

# summary: the last lines of a run, what failed behind what was skipped, and the same for
# programs, in build/logs/junit.xml; fails when a test did. A flaky one is counted as neither passed nor failed.
summary() {
  junit_write "$RESULTS" "$GANTRY_ROOT/build/logs/junit.xml"
  if [ "$(count_of skipped)" -gt 0 ]; then
    say "skipped, with the reasons:"
    skip_reasons
  fi
  cat "$FLAKES"
  if [ "$(count_of failed)" -gt 0 ]; then
    cat "$FAILURES"
    say "failed:"
    list_tests failed
  fi
  say "flaky: $(count_of flaky)"
  list_tests flaky
  printf 'summary: %d passed, %d failed, %d skipped\n' \
    "$(count_of passed)" "$(count_of failed)" "$(count_of skipped)"
  [ "$(count_of failed)" -eq 0 ] && [ $(($(count_of passed) + $(count_of flaky))) -gt 0 ]
}

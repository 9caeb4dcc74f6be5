# SPDX-License-Identifier: Apache-2.0
# Running a GoogleTest program so that every test has its first run and one that failed
# has a second, and reading from the log how each went. docs/flaky.md has the rule.
# Nothing here needs the tree: the guest of the suite `node` runs it too.
#
# All runs of a program are in one log, with lines of ours between GoogleTest's:
#   [  ENDED   ] with status N     after each run
#   [  AGAIN   ] TEST              before the second run of a test
#   [ NOT RUN  ] N                 so many tests had no run at all; ?: nobody knows

# More failed tests than these are no bad luck: none is run again.
GTEST_MOST_AGAIN=5
# Listing the tests of a program runs none of them.
GTEST_LIST_SECONDS=60

# gtest_output LOG COMMAND...: runs it with its output at the end of LOG, and what the
# shell says of how it was killed.
gtest_output() {
  local log="$1"
  shift
  { "$@" </dev/null; } >>"$log" 2>&1
}

# gtest_once LOG SECONDS PROGRAM [ARGUMENT...]: one run.
gtest_once() {
  local log="$1" seconds="$2" status=0
  shift 2
  gtest_output "$log" timeout -k 20 "$seconds" "$@" || status=$?
  # What a program that crashed said last may lack its line's end.
  printf '\n[  ENDED   ] with status %s\n' "$status" >>"$log"
}

# gtest_first LOG SECONDS PROGRAM [ARGUMENT...]: the first run of every test, to a new
# LOG. What a test that crashed or hung kept from running is run without it; that takes
# SECONDS once more at most.
gtest_first() {
  local log="$1" seconds="$2" end rest
  shift 2
  : >"$log"
  gtest_once "$log" "$seconds" "$@"
  end=$((SECONDS + seconds))
  while gtest_is_cut_off "$log"; do
    if ! rest=$(gtest_rest "$log" "$@"); then
      echo '[ NOT RUN  ] ?' >>"$log"
      return 0
    fi
    [ -n "$rest" ] || return 0
    if [ "$SECONDS" -ge "$end" ] || ! gtest_ended_in_test "$log" ||
      [ "$(gtest_failing "$log" | wc -l)" -gt "$GTEST_MOST_AGAIN" ]; then
      printf '[ NOT RUN  ] %d\n' "$(tr ':' '\n' <<<"$rest" | wc -l)" >>"$log"
      return 0
    fi
    gtest_once "$log" $((end - SECONDS)) "$@" --gtest_filter="$rest"
  done
}

# gtest_again LOG SECONDS PROGRAM [ARGUMENT...]: the second run of each test that failed
# or did not end, alone; SECONDS for all of them. Nothing when a sanitizer has reported:
# what it found is there, however the next run goes.
gtest_again() {
  local log="$1" end=$((SECONDS + $2)) test
  shift 2
  ! gtest_has_report "$log" || return 0
  for test in $(gtest_failing "$log"); do
    [ "$SECONDS" -lt "$end" ] || return 0
    printf '[  AGAIN   ] %s\n' "$test" >>"$log"
    gtest_once "$log" $((end - SECONDS)) "$@" --gtest_filter="$test"
  done
}

# gtest_few_failing LOG...: whether the tests that failed are run again.
gtest_few_failing() {
  local log count=0
  for log in "$@"; do
    count=$((count + $(gtest_failing "$log" | wc -l)))
  done
  [ "$count" -gt 0 ] && [ "$count" -le "$GTEST_MOST_AGAIN" ]
}

# gtest_outcomes LOG: a line for each thing that happened, with the number of the run:
#   RUN passed|skipped|failed|unended TEST MS unended: the program ended in it
#   RUN report -                              a sanitizer has found something
#   RUN again TEST                            the run is a second one
#   RUN ended STATUS whole|cut                cut: without GoogleTest's closing line
#   RUN missing N                             tests that had no run
# STATUS is ? where the log ends in a run.
gtest_outcomes() {
  awk '
    function word(line) { sub(/^[^]]*\] /, "", line); sub(/[ ,].*/, "", line); return line }
    function end_run(status) {
      if (open != "" && !whole) print run, "unended", open, 0
      if (report) print run, "report", "-"
      print run, "ended", status, (whole ? "whole" : "cut")
      run++
      open = ""
      whole = report = begun = 0
    }
    BEGIN { run = 1 }
    /^\[  ENDED   \] with status / { end_run($NF); next }
    /^\[  AGAIN   \] / { print run, "again", word($0); begun = 1; next }
    /^\[ NOT RUN  \] / { print run, "missing", $NF; next }
    NF { begun = 1 }
    /^\[==========\] [0-9]+ tests? from .* ran\./ || /^\[  PASSED  \]/ { whole = 1 }
    /Sanitizer: / || /:[0-9]+:[0-9]+: runtime error: / || /\/c\+\+\/[0-9.]+\/.*: Assertion / { report = 1 }
    /^\[ RUN      \] / { open = word($0) }
    # Not only at the start of a line: the test may have left one unfinished.
    open != "" && match($0, /\[(       OK|  SKIPPED|  FAILED ) \] .* \([0-9]+ ms\)$/) {
      kind = substr($0, RSTART + 3, 7)
      if (word(substr($0, RSTART)) == open) {
        print run, (kind == "     OK" ? "passed" : kind == "SKIPPED" ? "skipped" : "failed"), open, \
          substr($(NF - 1), 2)
        open = ""
      }
    }
    END { if (begun) end_run("?") }' "$1"
}

# gtest_failing LOG: the tests whose first run failed or did not end.
gtest_failing() {
  gtest_outcomes "$1" | awk '
    $2 == "again" { second[$1] = 1 }
    ($2 == "failed" || $2 == "unended") && !second[$1] && !seen[$3]++ { print $3 }'
}

# gtest_has_report LOG: whether a sanitizer has found something.
gtest_has_report() { gtest_outcomes "$1" | awk '$2 == "report" { found = 1 } END { exit !found }'; }

# gtest_is_cut_off LOG: whether the last run ended before GoogleTest was through.
gtest_is_cut_off() { gtest_outcomes "$1" | awk '$2 == "ended" { last = $4 } END { exit last != "cut" }'; }

# gtest_ended_in_test LOG: whether it was a test in which the last run ended.
gtest_ended_in_test() {
  gtest_outcomes "$1" | awk '$2 == "unended" { at = $1 } $2 == "ended" { last = $1 } END { exit at != last }'
}

# gtest_rest LOG PROGRAM [ARGUMENT...]: the tests that have not begun, as a filter.
# Fails when the program does not list its tests.
gtest_rest() {
  local log="$1" listed
  shift
  listed=$(timeout -k 20 "$GTEST_LIST_SECONDS" "$@" --gtest_list_tests 2>/dev/null </dev/null) || return
  awk '
    NR == FNR { if ($2 ~ /^(passed|skipped|failed|unended)$/) begun[$3] = 1; next }
    /^[^ ]/ { suite = $1 }
    /^  [^ ]/ && !((suite $1) in begun) { printf "%s%s%s", separator, suite, $1; separator = ":" }
    ' <(gtest_outcomes "$log") <(printf '%s\n' "$listed")
}

# gtest_results SUITE PROGRAM LOG: `passed|failed|flaky|skipped SUITE TEST MS` for each
# test, with the time that its first run took.
# A program that failed although none of its tests did is a failed test.
gtest_results() {
  gtest_outcomes "$3" | awk -v suite="$1" -v program="$2" '
    # Whether it is a test that the run ended as it did for.
    function is_a_tests(i) {
      if (cut[i]) return blamed[i] == "unended" && status[i] != "?"
      return blamed[i] == "failed" && status[i] == "1"
    }
    $2 == "again" { second[$1] = 1; next }
    $2 == "report" { reports = 1; next }
    $2 == "missing" { missing = $3; next }
    $2 == "ended" && second[$1] { good[last[$1]] = ($3 == "0" && passed[$1]); next }
    $2 == "ended" { ran = $1; status[$1] = $3; cut[$1] = ($4 == "cut"); next }
    second[$1] { last[$1] = $3; passed[$1] = ($2 == "passed"); next }
    { order[++count] = $3; outcome[$3] = $2; took[$3] = $4 }
    $2 == "failed" || $2 == "unended" { blamed[$1] = $2 }
    END {
      for (i = 1; i <= count; i++) {
        kind = outcome[order[i]]
        if (kind == "failed" || kind == "unended")
          kind = good[order[i]] && !reports ? "flaky" : "failed"
        print kind, suite, order[i], took[order[i]]
      }
      for (i = 1; i <= ran; i++) {
        if (!(i in status) || (status[i] == "0" && !cut[i]) || is_a_tests(i)) continue
        print "failed", suite, program "(ended-with-status-" status[i] ")"
      }
      if (missing != "") print "failed", suite, program "(" missing "-tests-did-not-run)"
    }'
}

# SPDX-License-Identifier: Apache-2.0
# The results of ./run test as others read them: JUnit's XML, with Maven Surefire's
# flakyFailure for what passed when it was run again.

# failure_file SUITE TEST: where the text of a failure is kept for junit_write.
failure_file() { echo "$GANTRY_ROOT/build/logs/failure-$1-${2//\//_}.txt"; }

# junit_write RESULTS FILE: from lines `KIND SUITE TEST [MILLISECONDS]`.
junit_write() {
  awk -v logs="$GANTRY_ROOT/build/logs" '
    # XML has no control characters but tab and line end, escaped or not.
    function xml(text) {
      gsub(/[\001-\010\013-\037]/, "?", text)
      gsub(/&/, "\\&amp;", text)
      gsub(/</, "\\&lt;", text)
      gsub(/>/, "\\&gt;", text)
      gsub(/"/, "\\&quot;", text)
      return text
    }
    function failure(element, message, suite, test, file, line) {
      printf "<%s message=\"%s\">", element, message
      gsub(/\//, "_", test)
      file = logs "/failure-" suite "-" test ".txt"
      while ((getline line <file) > 0) print xml(line)
      close(file)
      printf "see build/logs/suite-%s*.log</%s>", xml(suite), element
    }
    function testcase(kind, suite, test, ms, dot) {
      dot = index(test, ".")
      printf "    <testcase classname=\"%s\" name=\"%s\" time=\"%.3f\">", \
        xml(dot ? substr(test, 1, dot - 1) : suite), xml(substr(test, dot + 1)), ms / 1000
      if (kind == "failed") failure("failure", "failed", suite, test)
      if (kind == "flaky") failure("flakyFailure", "failed, and passed when run again", suite, test)
      if (kind == "skipped") printf "<skipped/>"
      print "</testcase>"
    }
    {
      if (!tests[$2]++) order[++suites] = $2
      count[$1]++
      of_suite[$1, $2]++
      lines[$2, tests[$2]] = $0
    }
    END {
      print "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
      printf "<testsuites name=\"gantry\" tests=\"%d\" failures=\"%d\" skipped=\"%d\">\n", \
        NR, count["failed"], count["skipped"]
      for (i = 1; i <= suites; i++) {
        suite = order[i]
        printf "  <testsuite name=\"%s\" tests=\"%d\" failures=\"%d\" errors=\"0\" skipped=\"%d\">\n", \
          xml(suite), tests[suite], of_suite["failed", suite], of_suite["skipped", suite]
        for (k = 1; k <= tests[suite]; k++) {
          split(lines[suite, k], field, " ")
          testcase(field[1], suite, field[3], field[4] + 0)
          delete field
        }
        print "  </testsuite>"
      }
      print "</testsuites>"
    }' "$1" | iconv -c -f UTF-8 -t UTF-8 >"$2"
}

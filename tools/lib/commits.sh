# SPDX-License-Identifier: Apache-2.0
# What a commit's message has to be: CONTRIBUTING.md, "Commits".

# commit_message NAME: of the message on standard input, says what is wrong, and fails.
# `area: summary` of at most 72, a blank line, a body whose lines are at most 76 (git log
# indents by 4) unless they cannot be broken.
commit_message() {
  awk -v id="$1" '
    NR == 1 && length($0) > 72 { print id ": subject longer than 72: " $0; bad = 1 }
    NR == 1 && !/^[a-zA-Z0-9_.\/, -]+: [^ ]/ { print id ": subject without area: " $0; bad = 1 }
    NR == 2 && $0 != "" { print id ": no blank line after the subject"; bad = 1 }
    NR > 2 && length($0) > 76 && / .* / { print id ": line longer than 76: " $0; bad = 1 }
    NR > 2 && $0 != "" { body = 1 }
    END { if (!body) { print id ": no body"; bad = 1 } exit bad }'
}

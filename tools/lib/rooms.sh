# SPDX-License-Identifier: Apache-2.0
# The include rule between the rooms of core/, as docs/architecture.md draws it.

# Longer chains of includes than this say that a header brings along what only its source
# needs.
MOST_INCLUDE_DEPTH=12

# rooms_drawn: the lines of the drawing: a room, and those whose headers it includes.
rooms_drawn() { sed -n '/^```rooms$/,/^```$/p' docs/architecture.md | grep -v '^```'; }

# rooms_included: `FILE HEADER` for each include of ours, the header by its path in the tree.
rooms_included() {
  git -c safe.directory='*' grep -E '^#include ("(core|plugins)/|<gantry/)' -- \
    'core/*.h' 'core/*.cc' 'plugins/*.h' 'plugins/*.cc' |
    sed -E 's|^([^:]*):#include "([^"]*)".*|\1 \2|; s|^([^:]*):#include <([^>]*)>.*|\1 core/include/\2|'
}

# A room includes what is drawn, all that is drawn is included, and what a room includes
# stands above it.
check_rooms() {
  awk '
    function room(path, part) { split(path, part, "/"); return part[2] }
    NR == FNR {
      if ($1 in line) { print "docs/architecture.md draws " $1 " twice"; bad = 1 }
      line[$1] = NR
      for (i = 2; i <= NF; i++) {
        drawn[$1 " " $i] = 1
        if (!($i in line)) { print "docs/architecture.md: " $i " does not stand above " $1; bad = 1 }
      }
      next
    }
    $1 !~ /^core\// || $2 !~ /^core\// { next }
    {
      from = room($1); to = room($2)
      if (from == "include") {
        if (to != "include") { print $1 " includes " $2 ": nothing of gantry/ may"; bad = 1 }
        next
      }
      if (!(from in line)) { print $1 ": docs/architecture.md does not draw core/" from; bad = 1; line[from] = 0 }
      if (from == to || to == "include") next
      if (!((from " " to) in drawn)) {
        print $1 " includes " $2 ": docs/architecture.md does not draw that " from " includes " to
        bad = 1
      }
      used[from " " to] = 1
    }
    END {
      for (pair in drawn) if (!(pair in used)) {
        split(pair, rooms, " ")
        print "docs/architecture.md draws that " rooms[1] " includes " rooms[2] ", and it does not"
        bad = 1
      }
      exit bad
    }' <(rooms_drawn) <(rooms_included)
}

# No chain of includes is longer than MOST_INCLUDE_DEPTH, and none is a circle.
check_include_depth() {
  rooms_included | awk -v most="$MOST_INCLUDE_DEPTH" '
    function depth(file, i, header, found, longest) {
      if (file in known) return known[file]
      if (file in open) { print file " includes itself"; bad = 1; return 0 }
      open[file] = 1
      longest = 0
      for (i = 1; i <= count[file]; i++) {
        header = includes[file, i]
        found = depth(header) + 1
        if (found > longest) { longest = found; next_of[file] = header }
      }
      delete open[file]
      return known[file] = longest
    }
    { includes[$1, ++count[$1]] = $2 }
    END {
      for (file in count) if (depth(file) > most) {
        chain = file
        for (at = file; at in next_of; at = next_of[at]) chain = chain "\n  " next_of[at]
        print file ": a chain of " known[file] " includes, at most " most ":\n  " chain
        bad = 1
      }
      exit bad
    }'
}

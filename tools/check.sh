#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./run check: what a reviewer should not have to look for. Formatting, licence
# lines, the include rule, foreign JSON, commit messages, headers that compile alone,
# clang-tidy. What clang-tidy found clean is remembered by content in
# $GANTRY_CACHE/tidy, so that only what changed is looked at again.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
. "$GANTRY_ROOT/tools/lib/build.sh"
. "$GANTRY_ROOT/tools/lib/commits.sh"
. "$GANTRY_ROOT/tools/lib/rooms.sh"
cd "$GANTRY_ROOT"

TIDY_CACHE="$GANTRY_CACHE/tidy"
TIDY_VERSION=2
# Looked at as one.
TIDY_SOURCES=8

tracked() {
  git -c safe.directory='*' ls-files -- "$@" | while read -r file; do
    [ ! -e "$file" ] || printf '%s\n' "$file"
  done
}

check_format() {
  tracked '*.cc' '*.h' | xargs -r clang-format-19 --dry-run -Werror
}

check_licence() {
  local file bad=0
  while read -r file; do
    if ! head -n 2 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0'; then
      say "$file: no licence line"
      bad=1
    fi
  done < <(tracked '*.cc' '*.c' '*.h' '*.rs' '*.wat' '*.wit' '*.proto' '*.sh' '*.cmake' \
    '*CMakeLists.txt' '*Cargo.toml' run tools/setup)
  return "$bad"
}

# A plugin sees the SDK and its own folder, a room of the core those that are drawn.
check_includes() {
  check_rooms && check_include_depth &&
  ! tracked 'plugins/*.cc' 'plugins/*.h' | xargs -r grep -nE '^#include "(core|tests)/' &&
    ! tracked 'core/include/*.h' | xargs -r grep -nE '^#include "'
}

# What others wrote is parsed within limits, by the one function that has them.
check_json() {
  ! tracked 'core/*.cc' 'core/*.h' 'plugins/*.cc' 'plugins/*.h' 'examples/*.cc' |
    grep -vx core/sdk/json.cc |
    xargs -r grep -nE '\b[jJ]son::(parse|accept|sax_parse|from_[a-z]+)\(|\bNode::(parse|accept)\('
}

# The latest commits.
check_commits() {
  local id bad=0
  while read -r id; do
    git -c safe.directory='*' log -1 --format=%B "$id" | commit_message "${id:0:9}" || bad=1
  done < <(git -c safe.directory='*' log --no-merges --format=%H -n "${GANTRY_CHECK_COMMITS:-10}")
  return "$bad"
}

# Headers that are not the first include of the source of their name, where the
# build shows that they compile alone.
headers_to_try() {
  local header source
  tracked 'core/*.h' 'plugins/*.h' | while read -r header; do
    source="${header%.h}.cc"
    [ -e "$source" ] && [ "$(grep -m1 '^#include' "$source")" = "#include \"$header\"" ] ||
      printf '%s\n' "$header"
  done
}

# One file that includes one header, for each of those; built like the rest.
check_headers() {
  local folder="$GANTRY_ROOT/build/headers" header name flags
  rm -rf "$folder/src"
  mkdir -p "$folder/src"
  flags="-std=c++23 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
  flags="$flags -I$GANTRY_ROOT -I$GANTRY_ROOT/core/include -I$GANTRY_ROOT/build/release"
  flags="$flags $(include_flags)"
  {
    printf 'rule cc\n  command = CCACHE_BASEDIR=%s ccache g++-14 %s -MD -MF $out.d -c $in -o $out\n' \
      "$GANTRY_ROOT" "$flags"
    printf '  depfile = $out.d\n  deps = gcc\n  description = $in\n'
    while read -r header; do
      name=$(printf '%s' "$header" | tr '/' '_')
      printf '#include "%s"\n' "$GANTRY_ROOT/$header" >"$folder/src/$name.cc"
      printf 'build %s.o: cc src/%s.cc\n' "$name" "$name"
    done < <(headers_to_try)
  } >"$folder/build.ninja"
  ninja -k 0 -j "$(build_jobs)" -C "$folder"
}

# The -isystem and -I of the build, for generated code and libraries.
include_flags() {
  grep -ohE '(-isystem |-I)[^ "]+' build/release/compile_commands.json | sort -u | tr '\n' ' '
}

# Prints `KEY SOURCE` for each source of core/ and plugins/: KEY is the hash of
# every file of the tree that goes into it, and of the checks' configuration.
tidy_keys() {
  local base
  base=$(cat .clang-tidy <(clang-tidy-19 --version) <(echo "$TIDY_VERSION") | sha256sum)
  {
    find core plugins proto build/release/proto -name '*.h' -o -name '*.cc' | xargs sha256sum |
      awk '{ print "hash", $2, $1 }'
    ninja -C build/release -t deps
  } | awk -v base="$base" -v root="$GANTRY_ROOT/" '
    function plain(path) {
      while (sub(/^\.\.\//, "", path)) up++
      if (index(path, root) == 1) return substr(path, length(root) + 1)
      return up >= 2 ? path : "build/release/" path
    }
    $1 == "hash" { hash[$2] = $3; next }
    /#deps/ { source = ""; next }
    NF == 1 {
      up = 0; path = plain($1)
      if (source == "") { source = path; text[source] = base }
      if (path in hash) text[source] = text[source] hash[path]
    }
    END { for (source in text) if (source ~ /^(core|plugins)\//) print text[source], source }' |
    while read -r text; do
      printf '%s %s\n' "$(printf '%s' "${text% *}" | sha256sum | cut -d' ' -f1)" "${text##* }"
    done | sort -k2
}

# tidy_split: reads lines `KEY SOURCE` sorted by SOURCE and writes build/tidy/N/todo,
# each with some sources of one folder, and beside it the flags they are built
# with, where clang-tidy looks for them. Prints each N.
tidy_split() {
  local unit
  rm -rf build/tidy
  mkdir -p build/tidy
  awk -v most="$TIDY_SOURCES" '
    { folder = $2; sub(/[^\/]*$/, "", folder) }
    folder != last || count == most { number++; count = 0; last = folder }
    { count++; print $1, $2 >"build/tidy/todo." number }'
  for unit in build/tidy/todo.*; do
    [ -e "$unit" ] || continue
    mkdir "build/tidy/${unit##*.}"
    mv "$unit" "build/tidy/${unit##*.}/todo"
    tidy_flags "$(awk -F '[ /]' '{ print $2 "/" $3; exit }' "build/tidy/${unit##*.}/todo")" \
      >"build/tidy/${unit##*.}/compile_flags.txt"
    echo "${unit##*.}"
  done
}

# What the compiler gets for the sources of a folder, a line for each flag.
tidy_flags() {
  grep -E "\"command\": .* -c $GANTRY_ROOT/$1/" build/release/compile_commands.json |
    sed 's/-isystem /-isystem/g; s/\\//g' | grep -oE -- ' -(isystem|I|D|W|std=)[^ ]+' |
    sed 's/^ //' | grep -vx -e -Werror | awk '!seen[$0]++'
}

# tidy_unit N: what clang-tidy says of the sources in build/tidy/N/todo. Most of
# its time goes into the headers of libraries, so it gets one file that includes
# them all; by a name that begins with UnifiedSource the static analyzer knows
# that these are sources, not headers. Sources that do not go together, because
# of equal names in their anonymous namespaces, are halved until they do.
tidy_unit() {
  local unit="build/tidy/$1" count
  awk -v root="$GANTRY_ROOT" '
    { printf "#include \"%s/%s\"  // NOLINT(bugprone-suspicious-include)\n", root, $2 }
    ' "$unit/todo" >"$unit/UnifiedSource.cc"
  count=$(wc -l <"$unit/todo")
  if [ "$count" -gt 1 ] &&
    ! clang-tidy-19 --quiet --checks=-*,misc-header-include-cycle \
      "$unit/UnifiedSource.cc" >"$unit/apart" 2>&1; then
    tidy_halves "$1" "$count"
    return
  fi
  clang-tidy-19 --quiet "$unit/UnifiedSource.cc" || return
  awk -v cache="$TIDY_CACHE" '{ print cache "/" $1 }' "$unit/todo" | xargs touch
}

tidy_halves() {
  local half status=0
  for half in a b; do
    mkdir -p "build/tidy/$1$half"
    cp "build/tidy/$1/compile_flags.txt" "build/tidy/$1$half"
  done
  head -n "$(($2 / 2))" "build/tidy/$1/todo" >"build/tidy/${1}a/todo"
  tail -n "+$(($2 / 2 + 1))" "build/tidy/$1/todo" >"build/tidy/${1}b/todo"
  for half in a b; do
    tidy_unit "$1$half" || status=1
  done
  return "$status"
}

check_tidy() {
  local key source
  mkdir -p "$TIDY_CACHE"
  export TIDY_CACHE GANTRY_ROOT
  export -f tidy_unit tidy_halves
  tidy_keys | while read -r key source; do
    [ -e "$TIDY_CACHE/$key" ] && touch "$TIDY_CACHE/$key" || printf '%s %s\n' "$key" "$source"
  done >"$LOG_DIR/tidy-todo"
  say "$(wc -l <"$LOG_DIR/tidy-todo") files changed"
  find "$TIDY_CACHE" -type f -mtime +30 -delete
  tidy_split <"$LOG_DIR/tidy-todo" |
    xargs -r -P "$(build_jobs)" -n 1 bash -c 'tidy_unit "$1"' -
}

[ "${1:-}" = --no-setup ] || "$GANTRY_ROOT/tools/setup" build unit check
# What has failed, for who calls this.
: >"$LOG_DIR/check-failed"
check_step() { step "$@" || echo "$1" >>"$LOG_DIR/check-failed"; }

check_step check-format "formatting" check_format
check_step check-licence "licence lines" check_licence
check_step check-includes "includes" check_includes
check_step check-json "foreign JSON" check_json
check_step check-abi "the plugin interface is the recorded one" tools/abi.sh
if [ -e .git ]; then
  check_step check-commits "commit messages" check_commits
fi
if build_preset release; then
  check_step check-headers "headers compile alone" check_headers
  check_step check-tidy "clang-tidy" check_tidy
else
  basename "$FAILED_STEP" .log >>"$LOG_DIR/check-failed"
fi
[ ! -s "$LOG_DIR/check-failed" ]

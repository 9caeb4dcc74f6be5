# SPDX-License-Identifier: Apache-2.0
# What the rows of ./run cluster came to: a file for each cell, and the table of them. A run of some
# columns or rows leaves the other cells as an earlier one has found them; of all begins anew.

RESULT_DIR="$GANTRY_ROOT/build/cluster-results"

# result COLUMN ROW passed|failed|left-out [REASON]
result() {
  mkdir -p "$RESULT_DIR"
  printf '%s\n%s\n' "$3" "${4:-}" >"$RESULT_DIR/$1.$2"
}

result_of() { sed -n 1p "$RESULT_DIR/$1.$2"; }

# note_of COLUMN ROW: why it has not passed. tools/cluster/notes has what is known to be so, and why;
# for all else it is what the row has said.
note_of() {
  [ "$(result_of "$1" "$2")" != passed ] || return 0
  awk -v column="$1" -v row="$2" '
    $1 != "#" && $1 == row && (" " $2 " ") ~ ("[ ,]" column "[ ,]") { sub(/^[^ ]+ +[^ ]+ +/, ""); print; found = 1; exit }
    END { exit !found }' "$GANTRY_ROOT/tools/cluster/notes" || sed -n 2p "$RESULT_DIR/$1.$2"
}

# What the row is, in its second comment line.
row_text() { sed -n '3s/^# //p' "$GANTRY_ROOT/tools/cluster/rows/$1"; }

# The columns of which there are results.
columns_there() {
  local column
  for column in "${CLUSTER_COLUMNS[@]}"; do
    ! compgen -G "$RESULT_DIR/$column.*" >/dev/null || echo "$column"
  done
}

# write_table: in Markdown, with the notes below it. Equal ones have one number; a cell that was
# never tried is empty.
write_table() {
  local columns column row note number cells notes=()
  columns=$(columns_there)
  printf 'Kubernetes %s, containerd %s, Linux %s with cgroup %s; %s.\n\n' "$KUBERNETES_VERSION" \
    "$GANTRY_E2E_CONTAINERD" "$(uname -r | cut -d. -f1,2)" \
    "$([ -e /sys/fs/cgroup/cgroup.controllers ] && echo v2 || echo v1)" "$(date -u +%Y-%m-%d)"
  printf '| | |'
  printf ' %s |' $columns
  printf '\n|---|---|'
  printf -- '---|%.0s' $columns
  printf '\n'
  for row in "${CLUSTER_ROWS[@]}"; do
    cells=
    for column in $columns; do
      if [ ! -e "$RESULT_DIR/$column.$row" ]; then
        cells+=" |"
        continue
      fi
      note=$(note_of "$column" "$row")
      number=
      if [ -n "$note" ]; then
        for ((number = 0; number < ${#notes[@]}; number++)); do
          [ "${notes[number]}" != "$note" ] || break
        done
        notes[number]="$note"
        number=" <sup>$((number + 1))</sup>"
      fi
      case "$(result_of "$column" "$row")" in
        passed) cells+=" yes |" ;;
        left-out) cells+=" -$number |" ;;
        *) cells+=" **no**$number |" ;;
      esac
    done
    printf '| `%s` | %s |%s\n' "$row" "$(row_text "$row")" "$cells"
  done
  printf '\n'
  for ((number = 0; number < ${#notes[@]}; number++)); do
    printf '%d. %s\n' $((number + 1)) "${notes[number]}"
  done
}

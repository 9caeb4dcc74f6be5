# SPDX-License-Identifier: Apache-2.0
# What is built with cargo: once for all presets and clones. Source it, do not run it.
#
#   rust_check FOLDER                  says what is missing, if anything is
#   rust_provide NAME FOLDER OUTPUT FILE...
#     puts the files that build_files makes of the folder's crates into OUTPUT. Whoever
#     calls it defines `build_files SOURCES TARGETS RESULT`, by which cargo_build is called.

# The compiler that Debian keeps current for the browsers; others than Debian name theirs.
CARGO="${GANTRY_CARGO:-/usr/bin/cargo}"
export RUSTC="${GANTRY_RUSTC:-/usr/bin/rustc}"
RUST_CACHE="${GANTRY_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/gantry}"
# Of results; of what they are made of only the latest.
RUST_KEPT=3

rust_check() {
  local needed version
  needed=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$1/Cargo.toml")
  if [ ! -x "$CARGO" ] || [ ! -x "$RUSTC" ]; then
    printf '%s\n' "$CARGO and $RUSTC are not both there"
    return 1
  fi
  version=$("$RUSTC" --version | cut -d' ' -f2)
  if [ "$(printf '%s\n' "$needed" "$version" | sort -V | head -n 1)" != "$needed" ]; then
    printf '%s\n' "$RUSTC is of $version, and $needed is the oldest that does"
    return 1
  fi
}

# rust_flags CACHE: no path of a clone or of a user gets into what is built.
rust_flags() {
  local registry="${CARGO_HOME:-${HOME:-/root}/.cargo}/registry/src"
  printf '%s' "-C relocation-model=static --cfg getrandom_backend=\"linux_getrandom\"" \
    " --remap-path-prefix=$registry=crates --remap-path-prefix=$1/source=engine"
}

rust_triple() { "$RUSTC" --version --verbose | sed -n 's/^host: //p'; }

# rust_sources FOLDER: the files, by their names in it.
rust_sources() {
  (cd "$1" && find . -name target -prune -o -type f \
    \( -name '*.rs' -o -name '*.wit' -o -name 'Cargo.*' -o -name build.sh \) -print | sort)
}

# What was compiled by another compiler is of no use.
rust_toolchain_key() {
  {
    "$RUSTC" --version --verbose
    "$CARGO" --version
    printf '%s\n' "$(rust_flags "$1")"
  } | sha256sum | cut -c1-16
}

rust_result_key() {
  {
    rust_toolchain_key "$1"
    (cd "$2" && rust_sources . | xargs sha256sum)
  } | sha256sum | cut -c1-16
}

# rust_forget KEPT PATH...: all but the latest of these.
rust_forget() {
  local kept="$1" path
  shift
  # shellcheck disable=SC2012
  ls -1dt "$@" 2>/dev/null | tail -n "+$((kept + 1))" | while read -r path; do rm -rf "$path"; done
}

# cargo_build SOURCES TARGETS PACKAGE OPT_LEVEL FLAGS: the package's files are in
# TARGETS/TRIPLE/release. The triple is named so that the flags are not those of programs
# that the build itself runs.
cargo_build() {
  CARGO_TARGET_DIR="$2" CARGO_PROFILE_RELEASE_OPT_LEVEL="$4" \
    RUSTFLAGS="$(rust_flags "${1%/source}") $5" \
    "$CARGO" build --release --locked --offline --jobs "${GANTRY_CARGO_JOBS:-2}" \
    --manifest-path "$1/Cargo.toml" --package "$3" --target "$(rust_triple)"
}

# rust_build CACHE FOLDER KEY: makes CACHE/KEY. Sources are built where every clone builds
# them, beside what they depend on.
rust_build() {
  local cache="$1" folder="$2" key="$3" file targets
  rm -rf "$cache/source" "$cache/$key.part"
  mkdir -p "$cache/$key.part"
  while read -r file; do
    mkdir -p "$cache/source/$(dirname "$file")"
    cat "$folder/$file" >"$cache/source/$file"
  done < <(rust_sources "$folder")
  "$CARGO" fetch --locked --manifest-path "$cache/source/Cargo.toml"
  targets="$cache/target-$(rust_toolchain_key "$cache")"
  mkdir -p "$targets"
  touch "$targets"
  build_files "$cache/source" "$targets" "$cache/$key.part"
  mv "$cache/$key.part" "$cache/$key"
  rust_forget 1 "$cache"/target-*
}

rust_provide() {
  local cache="$RUST_CACHE/$1" folder="$2" output="$3" key file
  shift 3
  mkdir -p "$cache" "$output"
  # One at a time: the second of two builds takes what the first made.
  exec 9>"$cache/lock"
  flock 9
  key=$(rust_result_key "$cache" "$folder")
  [ -d "$cache/$key" ] || rust_build "$cache" "$folder" "$key"
  touch "$cache/$key"
  for file in "$@"; do
    cp "$cache/$key/$file" "$output/$file.part"
    mv "$output/$file.part" "$output/$file"
  done
  # A name of sixteen digits is a result.
  rust_forget "$RUST_KEPT" "$cache"/[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]*
  flock -u 9
}

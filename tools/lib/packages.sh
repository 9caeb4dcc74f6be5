# SPDX-License-Identifier: Apache-2.0
# How Debian packages are made of the tree: packaging/debian is the recipe, in a copy of the tree.
. "$GANTRY_ROOT/tools/lib/build.sh"
. "$GANTRY_ROOT/tools/lib/vmm_kernel.sh"

PACKAGES="$GANTRY_ROOT/build/packages"
PACKAGES_WORK="$GANTRY_ROOT/build/packages-work"

tree_git() { git -c safe.directory='*' -C "$GANTRY_ROOT" "$@"; }

# Sets PACKAGE_VERSION, and SOURCE_DATE_EPOCH: the time that every file in a package has.
choose_package_version() {
  local release name
  release=$(sed -n 's/^project(gantry VERSION \([0-9.]*\) .*/\1/p' "$GANTRY_ROOT/CMakeLists.txt")
  if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH=$(tree_git log -1 --format=%ct 2>/dev/null) ||
      die "this tree has no commits to take the time from: set SOURCE_DATE_EPOCH"
  fi
  export SOURCE_DATE_EPOCH
  PACKAGE_VERSION="${GANTRY_PACKAGE_VERSION:-}"
  [ -z "$PACKAGE_VERSION" ] || return 0
  PACKAGE_VERSION="$release"
  if [ "$(tree_git tag --points-at HEAD 2>/dev/null)" != "v$release" ]; then
    name=$(tree_git rev-parse --short=8 HEAD) ||
      die "this tree has no commits to take a version from: set GANTRY_PACKAGE_VERSION"
    # Before the release that it will be.
    PACKAGE_VERSION+="~$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M).$name"
  fi
}

# copy_tree FOLDER: what is in the tree, and nothing that was built.
copy_tree() {
  mkdir -p "$1"
  tree_git ls-files -z --cached --others --exclude-standard |
    tar -C "$GANTRY_ROOT" --null --ignore-failed-read -T - -cf - | tar -C "$1" -xf -
  cp -r "$1/packaging/debian" "$1/debian"
  cat >"$1/debian/changelog" <<CHANGELOG
gantry ($PACKAGE_VERSION) unstable; urgency=medium

  * What is new is in /usr/share/doc/gantry/CHANGELOG.md.gz.

 -- $(sed -n 's/^Maintainer: //p' "$1/debian/control")  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
CHANGELOG
}

# The compiler's cache and what cargo has loaded are the caller's: debhelper gives a build a home
# of its own.
packages_build() (
  copy_tree "$1" && cd "$1" || exit
  umask 022
  export CCACHE_DIR="${CCACHE_DIR:-$GANTRY_CACHE/ccache}" CCACHE_MAXSIZE="${CCACHE_MAXSIZE:-5G}"
  export CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" GANTRY_VMM_KERNEL="$VMM_KERNEL"
  export LC_ALL=C.UTF-8 DEB_BUILD_OPTIONS="nocheck parallel=$(build_jobs)"
  dpkg-buildpackage -b -uc -us
)

# build_packages WORK OUT: the packages in OUT, and with them .changes and .buildinfo. WORK, a folder
# of our own, stays until the next time, for who looks for a fault.
build_packages() {
  local work="$1" out="$2"
  rm -rf "$work"
  mkdir -p "$out"
  step "${work##*/}" "packages of $PACKAGE_VERSION, in $out" packages_build "$work/gantry" || return
  rm -f "$out"/gantry*_*.{deb,changes,buildinfo}
  mv "$work"/*.{deb,changes,buildinfo} "$out/"
}

# What the packages are made of: the version, and each file of the tree.
packages_key() {
  {
    printf '%s %s %s\n' "$PACKAGE_VERSION" "$SOURCE_DATE_EPOCH" "$VMM_KERNEL"
    cd "$GANTRY_ROOT"
    tree_git ls-files -z --cached --others --exclude-standard | xargs -0 sha256sum 2>/dev/null || true
  } | sha256sum | cut -c1-16
}

# provide_packages: in $PACKAGES, built where those that are there are not of this tree.
provide_packages() {
  local key
  choose_package_version
  key=$(packages_key)
  [ "$(cat "$PACKAGES/key" 2>/dev/null)" != "$key" ] || return 0
  rm -f "$PACKAGES/key"
  build_packages "$PACKAGES_WORK" "$PACKAGES" && printf '%s\n' "$key" >"$PACKAGES/key"
}

# scripts_that_stop PACKAGE FOLDER: which of its scripts, taken apart in FOLDER, end or restart what
# runs. gantry.prerm may: it looks at what runs before.
scripts_that_stop() {
  local spared=
  [[ "${1##*/}" != gantry_* ]] || spared=prerm
  dpkg-deb -e "$1" "$2" || return
  grep -rlE --exclude="$spared" '(deb-systemd-invoke|systemctl) .*(stop|restart)' "$2" || true
}

# Debian's rules, and ours: a package's script stops nothing.
lint_packages() {
  local package found folder bad=0
  folder=$(mktemp -d)
  for package in "$1"/*.deb; do
    found=$(scripts_that_stop "$package" "$folder/${package##*/}") || bad=1
    [ -z "$found" ] || { echo "$found: ends what runs" && bad=1; }
  done
  rm -rf "$folder"
  lintian --allow-root --fail-on error,warning "$1"/gantry_*.changes || bad=1
  return "$bad"
}

# compare_packages ONE OTHER
compare_packages() {
  local file bad=0
  for file in "$1"/*.deb; do
    sha256sum "$file" "$2/${file##*/}"
    cmp "$file" "$2/${file##*/}" || bad=1
  done
  return "$bad"
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./run packages [DIR]: Debian packages of this tree, in DIR (build/packages).
# ./run packages --twice [DIR]: builds them twice, in two folders, the second time without the
# compiler's cache, and compares them byte for byte.
#
# The version is that of the tree, with the last commit's time and name where that has no tag;
# GANTRY_PACKAGE_VERSION is another one, and SOURCE_DATE_EPOCH another time.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
. "$GANTRY_ROOT/tools/lib/packages.sh"

twice=no
if [ "${1:-}" = --twice ]; then
  twice=yes
  shift
fi
case "${1:-}" in
  -*) die "'$1' is not understood: ./run packages [--twice] [DIR]" ;;
esac
out="${1:-$GANTRY_ROOT/build/packages}"
mkdir -p "$out"
out=$(cd "$out" && pwd)
"$GANTRY_ROOT/tools/setup" packages
choose_package_version
key=$(packages_key)
if [ "$out" = "$PACKAGES" ]; then
  provide_packages
else
  build_packages "$PACKAGES_WORK" "$out"
fi
step packages-lintian "lintian" lint_packages "$out"
if [ "$twice" = yes ]; then
  [ "$(packages_key)" = "$key" ] || die "the tree has changed since the first build: begin anew"
  CCACHE_DISABLE=1 build_packages "$GANTRY_ROOT/build/packages-work-elsewhere" "$GANTRY_ROOT/build/packages-again"
  step packages-equal "both builds are equal, byte for byte" \
    compare_packages "$out" "$GANTRY_ROOT/build/packages-again"
fi
say "packages of $PACKAGE_VERSION in $out:"
(cd "$out" && ls -1 ./*.deb | sed 's|^\./|  |')

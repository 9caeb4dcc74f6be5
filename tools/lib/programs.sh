# SPDX-License-Identifier: Apache-2.0
# What containerds.sh and runscs.sh share: programs of others that the tests drive,
# out of Debian's packages or from a Go module, and never installed on the host.

# debian_version PACKAGE NUMBER: the whole version that begins with the number. By
# that, for a Debian 12 with packages of 13 offers those of both releases.
debian_version() {
  apt-cache madison "$1" | tr -d ' ' | cut -d'|' -f2 | grep -m 1 "^${2//./\\.}[^0-9]"
}

# from_debian PACKAGE NUMBER FOLDER PROGRAM...: these programs of a package, unpacked
# into the folder. A service would start on the host if the package were installed.
from_debian() {
  local package="$1" number="$2" folder="$3" version work status=0
  shift 3
  version=$(debian_version "$package" "$number") || {
    retry 3 apt-get -q update
    version=$(debian_version "$package" "$number") || {
      say "no package source has $package $number"
      return 1
    }
  }
  work=$(mktemp -d)
  (
    chmod 755 "$work" && cd "$work" &&
      retry 3 apt-get -q download "$package=$version" &&
      dpkg -x "$package"_*.deb unpacked &&
      mkdir -p "$folder" && cp "${@/#/unpacked/usr/bin/}" "$folder/"
  ) || status=$?
  rm -rf "$work"
  return "$status"
}

go_command() {
  local go
  for go in /usr/local/go/bin/go /usr/lib/go-1.24/bin/go "$(command -v go || true)"; do
    if [ -x "$go" ] && "$go" version | grep -Eq 'go1\.(2[4-9]|[3-9][0-9])'; then
      echo "$go"
      return
    fi
  done
  die "no Go of 1.24 or later"
}

# SPDX-License-Identifier: Apache-2.0
# Brings the containerd releases that the tests drive into
# $GANTRY_CACHE/containerd/VERSION/bin. Nothing is installed on the host.
. "$GANTRY_ROOT/tools/lib/programs.sh"

# Those of each run of the tests; suites with others bring them when it is their turn. 1.6.20 is the
# package of Debian 12, and 1.7.24 that of Debian 13.
CONTAINERDS=(1.7.24 2.1.9 2.3.4)
# That of the demo, the benchmark and the node.
export GANTRY_E2E_CONTAINERD="${GANTRY_E2E_CONTAINERD:-2.3.4}"

containerd_bin() { echo "$GANTRY_CACHE/containerd/$1/bin"; }

# containerd_there VERSION: complete, and of that version indeed.
containerd_there() {
  local bin
  bin=$(containerd_bin "$1")
  [ -x "$bin/containerd-shim-runc-v2" ] && [ -x "$bin/ctr" ] &&
    "$bin/containerd" --version 2>/dev/null | grep -Eq "[ v]${1//./\\.}([^0-9]|$)"
}

# containerd_from_debian VERSION
containerd_from_debian() {
  from_debian containerd "$1" "$(containerd_bin "$1")" containerd ctr containerd-shim-runc-v2
}

# `go install module@version` refuses 2.1.9, whose go.mod excludes versions;
# built in a copy of its module instead, which serves every release alike.
containerd_from_module() {
  local version="$1" go bin work module program
  go=$(go_command)
  bin=$(containerd_bin "$version")
  module=github.com/containerd/containerd/v2
  export GOTOOLCHAIN=auto CGO_ENABLED=0 GOFLAGS=-mod=mod
  work=$(mktemp -d)
  (
    set -e
    cd "$work"
    retry 3 "$go" mod download -json "$module@v$version" >module.json
    cp -r "$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' module.json)" source
    chmod -R u+w source
    cd source
    mkdir -p "$bin"
    for program in containerd ctr containerd-shim-runc-v2; do
      retry 3 "$go" build -trimpath -o "$bin/$program.part" \
        -ldflags "-s -w -X $module/version.Version=v$version" "./cmd/$program"
      mv "$bin/$program.part" "$bin/$program"
    done
  )
  local status=$?
  rm -rf "$work"
  return "$status"
}

# provide_containerds VERSION...
provide_containerds() {
  local version
  for version in "$@"; do
    containerd_there "$version" && continue
    case "$version" in
      1.*) step "containerd-$version" "containerd $version from Debian" \
        containerd_from_debian "$version" ;;
      *) step "containerd-$version" "containerd $version from its Go module" \
        containerd_from_module "$version" ;;
    esac
  done
}

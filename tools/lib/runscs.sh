# SPDX-License-Identifier: Apache-2.0
# Brings the builds of gVisor's runsc that the tests drive into
# $GANTRY_CACHE/runsc/RELEASE/bin. Nothing is installed on the host.
. "$GANTRY_ROOT/tools/lib/programs.sh"

RUNSC_DEBIAN=20240729
RUNSC_MODULE=20260905
RUNSC_MODULE_VERSION=v0.0.0-20260905035102-160fafc42237

runsc_bin() { echo "$GANTRY_CACHE/runsc/$1/bin"; }

# runsc_there RELEASE: it runs, and is of that release indeed. One from the module
# tells no version, but Go notes the module's in what it builds.
runsc_there() {
  local runsc said
  runsc="$(runsc_bin "$1")/runsc"
  said=$("$runsc" --version 2>/dev/null) || return 1
  if [ "$1" = "$RUNSC_DEBIAN" ]; then
    [[ "$said" == *"~$RUNSC_DEBIAN."* ]]
  else
    LC_ALL=C grep -aqF $'mod\tgvisor.dev/gvisor\t'"$RUNSC_MODULE_VERSION"$'\t' "$runsc"
  fi
}

runsc_from_debian() {
  from_debian runsc "0.0~$RUNSC_DEBIAN" "$(runsc_bin "$RUNSC_DEBIAN")" runsc &&
    runsc_there "$RUNSC_DEBIAN"
}

runsc_from_module() {
  local go bin status=0
  go=$(go_command) || return
  bin=$(runsc_bin "$RUNSC_MODULE")
  mkdir -p "$bin/part"
  GOTOOLCHAIN=auto CGO_ENABLED=0 GOFLAGS=-mod=mod GOBIN="$bin/part" \
    retry 3 "$go" install -trimpath -ldflags "-s -w" \
    "gvisor.dev/gvisor/runsc@$RUNSC_MODULE_VERSION" &&
    mv "$bin/part/runsc" "$bin/runsc" && runsc_there "$RUNSC_MODULE" || status=$?
  rm -rf "$bin/part"
  return "$status"
}

# provide_runscs: both.
provide_runscs() {
  runsc_there "$RUNSC_DEBIAN" ||
    step "runsc-$RUNSC_DEBIAN" "runsc $RUNSC_DEBIAN from Debian" runsc_from_debian
  runsc_there "$RUNSC_MODULE" ||
    step "runsc-$RUNSC_MODULE" "runsc $RUNSC_MODULE from its Go module" runsc_from_module
}

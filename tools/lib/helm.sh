# SPDX-License-Identifier: Apache-2.0
# helm, built of its Go module once, in $GANTRY_CACHE; and how such a program is built.
. "$GANTRY_ROOT/tools/lib/programs.sh"

HELM_VERSION=v3.16.4
HELM="$GANTRY_CACHE/helm/$HELM_VERSION/helm"

# from_go PROGRAM PACKAGE@VERSION
from_go() {
  local folder="${1%/*}"
  mkdir -p "$folder"
  GOTOOLCHAIN=auto CGO_ENABLED=0 GOFLAGS=-mod=mod GOBIN="$folder" retry 3 \
    "$(go_command)" install -trimpath -ldflags "-s -w" "$2"
}

provide_helm() {
  [ -x "$HELM" ] || step helm "helm $HELM_VERSION from its Go module" \
    from_go "$HELM" "helm.sh/helm/v3/cmd/helm@$HELM_VERSION"
}

# SPDX-License-Identifier: Apache-2.0
# Builds Kubernetes and etcd from their Go modules into $GANTRY_CACHE/kubernetes/VERSION/bin. Nothing
# is installed on the host. A first time takes an hour on two processors.
#
# k8s.io/kubernetes cannot be had by `go install`: its go.mod takes the k8s.io modules from folders
# beside it, which its module does not have. They are released, too; a go.mod of our own names them.
. "$GANTRY_ROOT/tools/lib/programs.sh"

KUBERNETES_VERSION="${GANTRY_KUBERNETES:-1.34.4}"
# That which the k8s.io modules of this version ask for, so that both are built of the same packages.
ETCD_VERSION=3.6.4
KUBERNETES_PROGRAMS=(kubectl kube-apiserver kubelet kube-scheduler kube-controller-manager)

kubernetes_bin() { echo "$GANTRY_CACHE/kubernetes/$KUBERNETES_VERSION/bin"; }

# kubernetes_there: complete, and of that version indeed. A program is moved to its name when it is
# whole.
kubernetes_there() {
  local bin program
  bin=$(kubernetes_bin)
  for program in etcd "${KUBERNETES_PROGRAMS[@]}"; do
    [ -x "$bin/$program" ] || return 1
  done
  "$bin/kubelet" --version 2>/dev/null | grep -qx "Kubernetes v$KUBERNETES_VERSION" &&
    "$bin/etcd" --version 2>/dev/null | grep -qx "etcd Version: $ETCD_VERSION"
}

# kubernetes_module GO: writes the go.mod of a module whose only purpose is to build them.
kubernetes_module() {
  local go="$1" staging="v0.${KUBERNETES_VERSION#1.}" directory name
  retry 3 "$go" mod download -json "k8s.io/kubernetes@v$KUBERNETES_VERSION" >module.json || return
  directory=$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' module.json)
  {
    printf 'module cluster\n\n'
    grep -E '^(go|godebug) ' "$directory/go.mod"
    printf '\nrequire (\n\tk8s.io/kubernetes v%s\n\tgo.etcd.io/etcd/server/v3 v%s\n)\n\nreplace (\n' \
      "$KUBERNETES_VERSION" "$ETCD_VERSION"
    sed -n 's|^\t\(k8s.io/[a-z-]*\) => ./staging/.*|\1|p' "$directory/go.mod" |
      while read -r name; do printf '\t%s => %s %s\n' "$name" "$name" "$staging"; done
    printf ')\n'
  } >go.mod
  # What a module needs to be built as part of this one is written below its own imports.
  {
    printf 'package cluster\n\nimport (\n\t_ "go.etcd.io/etcd/server/v3"\n'
    printf '\t_ "k8s.io/kubernetes/cmd/%s"\n' "${KUBERNETES_PROGRAMS[@]}"
    printf ')\n'
  } >cluster.go
}

# What `--version` says, and what the programs think of each other.
kubernetes_flags() {
  local package minor="${KUBERNETES_VERSION#1.}"
  minor="${minor%%.*}"
  printf '%s' '-s -w'
  for package in k8s.io/component-base k8s.io/client-go/pkg; do
    printf ' -X %s/version.gitVersion=v%s -X %s/version.gitMajor=1 -X %s/version.gitMinor=%s' \
      "$package" "$KUBERNETES_VERSION" "$package" "$package" "$minor"
  done
}

kubernetes_from_modules() {
  local go bin flags work program status=0
  go=$(go_command) || return
  bin=$(kubernetes_bin)
  flags=$(kubernetes_flags)
  work=$(mktemp -d)
  mkdir -p "$bin"
  (
    set -e
    cd "$work"
    export GOTOOLCHAIN=auto CGO_ENABLED=0 GOFLAGS=-mod=mod
    kubernetes_module "$go"
    build() {
      [ ! -x "$bin/$1" ] || return 0
      retry 3 nice -n 19 "$go" build -p 2 -trimpath -ldflags "$flags" -o "$bin/$1.part" "$2"
      mv "$bin/$1.part" "$bin/$1"
    }
    build etcd go.etcd.io/etcd/server/v3
    for program in "${KUBERNETES_PROGRAMS[@]}"; do
      build "$program" "k8s.io/kubernetes/cmd/$program"
    done
  ) || status=$?
  rm -rf "$work"
  [ "$status" -eq 0 ] && kubernetes_there
}

provide_kubernetes() {
  kubernetes_there ||
    step "kubernetes-$KUBERNETES_VERSION" \
      "Kubernetes $KUBERNETES_VERSION and etcd $ETCD_VERSION from their Go modules, which takes long" \
      kubernetes_from_modules
}

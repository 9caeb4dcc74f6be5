#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/check_chart.sh: is the Helm chart in order? helm lints and renders it with several values, and
# each object is held against the schemas of Kubernetes. helm and kubeconform are built of their Go
# modules, once, into $GANTRY_CACHE; the schemas are made of what k8s.io/kubernetes brings. No cluster
# is needed. Not a part of `./run test`: the builds take minutes.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
. "$GANTRY_ROOT/tools/lib/helm.sh"

CHART="$GANTRY_ROOT/packaging/kubernetes/chart"
KUBECONFORM_VERSION=v0.6.7
KUBERNETES_VERSION=v1.34.4
KUBECONFORM="$GANTRY_CACHE/kubeconform/$KUBECONFORM_VERSION/kubeconform"
SCHEMAS="$GANTRY_CACHE/kubernetes-schemas/$KUBERNETES_VERSION"

# One file for each kind, as kubeconform looks for them. A key that the type does not have is an error,
# as with the API server's strict validation.
make_schemas() {
  local work swagger kind name
  work=$(mktemp -d)
  (cd "$work" && GOFLAGS=-mod=mod retry 3 "$(go_command)" mod download -json \
    "k8s.io/kubernetes@$KUBERNETES_VERSION" >module.json) || return
  swagger="$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' "$work/module.json")/api/openapi-spec/swagger.json"
  mkdir -p "$SCHEMAS.part" || return
  jq '{definitions: (.definitions | map_values(
        if .format == "int-or-string" then {oneOf: [{type: "string"}, {type: "integer"}]}
        elif has("properties") and (has("additionalProperties") | not)
          then . + {additionalProperties: false}
        else . end))}' "$swagger" >"$SCHEMAS.part/_definitions.json" || return
  jq -r '.definitions | to_entries[] | .key as $name | .value["x-kubernetes-group-version-kind"] // [] | .[] |
         "\(.kind | ascii_downcase)-\(if .group == "" then "" else (.group | split(".")[0]) + "-" end)\(.version) \($name)"' \
    "$swagger" | while read -r kind name; do
    printf '{"$ref": "_definitions.json#/definitions/%s"}\n' "$name" >"$SCHEMAS.part/$kind.json" || return
  done || return
  rm -rf "$work" "$SCHEMAS"
  mv "$SCHEMAS.part" "$SCHEMAS"
}

provide_tools() {
  provide_helm || return
  [ -x "$KUBECONFORM" ] || step kubeconform "kubeconform $KUBECONFORM_VERSION from its Go module" \
    from_go "$KUBECONFORM" "github.com/yannh/kubeconform/cmd/kubeconform@$KUBECONFORM_VERSION"
  [ -d "$SCHEMAS" ] || step schemas "schemas of Kubernetes $KUBERNETES_VERSION" make_schemas
}

render() { "$HELM" template gantry "$CHART" --namespace gantry-system --kube-version "$KUBERNETES_VERSION" "$@"; }

valid() {
  "$KUBECONFORM" -strict -summary -schema-location "$SCHEMAS/{{.ResourceKind}}{{.KindSuffix}}.json"
}

# expect NAME COUNT KIND VALUES...: it renders so many objects of that kind, and all are valid.
expect() {
  local name="$1" count="$2" kind="$3" found
  shift 3
  render "$@" >"$WORK/rendered.yaml"
  found=$(grep -c "^kind: $kind$" "$WORK/rendered.yaml" || true)
  [ "$found" = "$count" ] || { say "$name: $found objects '$kind', not $count"; return 1; }
  valid <"$WORK/rendered.yaml" || { say "$name: not valid"; return 1; }
}

# refused NAME VALUES...: the values' schema does not let it pass.
refused() {
  local name="$1"
  shift
  if render "$@" >"$WORK/rendered.yaml" 2>"$WORK/error"; then
    say "$name: was rendered"
    return 1
  fi
  grep -q "values don't meet the specifications of the schema" "$WORK/error" ||
    { cat "$WORK/error"; return 1; }
}

check() {
  local failed=0
  "$HELM" lint --strict --kube-version "$KUBERNETES_VERSION" "$CHART" || failed=1
  expect "default values" 4 RuntimeClass || failed=1
  expect "two runtimes" 2 RuntimeClass --set-json \
    'runtimes=[{"handler":"runc","name":"gantry"},{"handler":"runc","name":"direct","sandboxer":"shim"}]' || failed=1
  expect "no classes" 0 RuntimeClass --set runtimeClasses.create=false || failed=1
  expect "uninstall" 0 RuntimeClass --set mode=uninstall || failed=1
  expect "uninstall" 1 DaemonSet --set mode=uninstall || failed=1
  expect "an account that is there" 0 ServiceAccount \
    --set serviceAccount.create=false --set serviceAccount.name=other || failed=1
  expect "everything set" 1 DaemonSet --set image.digest="sha256:$(printf '0%.0s' {1..64})" \
    --set-json 'image.pullSecrets=[{"name":"pull"}]' --set restart=never --set containerd.distribution=k3s \
    --set-json 'affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}}' || failed=1
  refused "an unknown key" --set colour=red || failed=1
  refused "a wrong restart" --set restart=sometimes || failed=1
  refused "a name that is no label" --set-json 'runtimes=[{"handler":"runc","name":"Gantry"}]' || failed=1
  refused "no runtimes" --set-json 'runtimes=[]' || failed=1
  # The check itself: an object with a wrong key is refused.
  if render | sed 's/^handler: /handlr: /' | valid; then
    say "a RuntimeClass without a handler passed"
    failed=1
  fi
  return "$failed"
}

provide_tools
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
step chart "chart: lint, rendered objects, refused values" check

# SPDX-License-Identifier: Apache-2.0
# The node of ./run cluster, inside its namespaces: the programs of a cluster, started and stopped,
# and what the rows need of them.
. "$GANTRY_ROOT/tools/lib/kubernetes.sh"

NODE_NAME=gantry-node
NODE_ADDRESS=10.99.0.1
# Of the service `kubernetes`, which is the node's own: nobody forwards services here.
API_ADDRESS=10.96.0.1
ETC="$CLUSTER_DIR/etc"
# The installer's cluster has another one.
CONTAINERD_CONFIG="${CONTAINERD_CONFIG:-$ETC/containerd.toml}"
# Not below /run: that is empty after a reboot.
PID_DIR="$CLUSTER_DIR/pids"
LOGS="$CLUSTER_DIR/logs"
ROW_SECONDS=420
export KUBECONFIG="$ETC/admin.kubeconfig"
[ "$CONTAINERD_CONFIG" != "$ETC/containerd.toml" ] || export GANTRY_CONFIG="$ETC/gantry.yaml"

# await SECONDS TEXT COMMAND...: until it succeeds; the time is there for what never comes.
await() {
  local until text="$2"
  until=$(($(date +%s) + $1 * CLUSTER_SLOWNESS))
  shift 2
  until "$@" >/dev/null 2>&1; do
    if [ "$(date +%s)" -ge "$until" ]; then
      say "reason: $text: not so in time"
      return 1
    fi
    sleep 0.2
  done
}

# start NAME COMMAND...: its output is in logs/NAME.log, its pid in pids/NAME.
start() {
  local name="$1"
  shift
  mkdir -p "$PID_DIR"
  setsid "$@" >>"$LOGS/$name.log" 2>&1 </dev/null &
  echo $! >"$PID_DIR/$name"
  disown
}

runs() { [ -e "$PID_DIR/$1" ] && kill -0 "$(cat "$PID_DIR/$1")" 2>/dev/null; }

# stop NAME [SIGNAL]: and waits for its end.
stop() {
  local pid
  pid=$(cat "$PID_DIR/$1" 2>/dev/null) || return 0
  kill "-${2:-TERM}" "$pid" 2>/dev/null || true
  timeout 20 tail --pid="$pid" -f /dev/null || kill -9 "$pid" 2>/dev/null || true
  rm -f "$PID_DIR/$1"
}

# certificate NAME SUBJECT [ALTERNATIVE_NAMES]: by the cluster's authority, for both ends.
certificate() {
  {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$ETC/$1.key" \
      -subj "$2" -out "$ETC/$1.csr"
    openssl x509 -req -in "$ETC/$1.csr" -CA "$ETC/ca.crt" -CAkey "$ETC/ca.key" -CAcreateserial \
      -days 30 -out "$ETC/$1.crt" -extfile <(
        echo extendedKeyUsage=serverAuth,clientAuth
        [ -z "${3:-}" ] || echo "subjectAltName=$3"
      )
  } 2>>"$LOGS/openssl.log"
}

kubeconfig() {
  cat >"$ETC/$1.kubeconfig" <<CONFIG
apiVersion: v1
kind: Config
clusters: [{name: cluster, cluster: {server: "https://127.0.0.1", certificate-authority: $ETC/ca.crt}}]
users: [{name: user, user: {client-certificate: $ETC/$1.crt, client-key: $ETC/$1.key}}]
contexts: [{name: cluster, context: {cluster: cluster, user: user}}]
current-context: cluster
CONFIG
}

node_keys() {
  local name
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$ETC/ca.key" \
    -out "$ETC/ca.crt" -subj /CN=gantry-cluster -days 30 2>>"$LOGS/openssl.log"
  openssl genrsa -out "$ETC/accounts.key" 2048 2>>"$LOGS/openssl.log"
  certificate apiserver /CN=kube-apiserver \
    "IP:127.0.0.1,IP:$NODE_ADDRESS,IP:$API_ADDRESS,DNS:kubernetes,DNS:kubernetes.default.svc"
  certificate apiserver-client /O=system:masters/CN=kube-apiserver-client
  certificate admin /O=system:masters/CN=admin
  certificate controllers /CN=system:kube-controller-manager
  certificate scheduler /CN=system:kube-scheduler
  certificate kubelet "/O=system:nodes/CN=system:node:$NODE_NAME" "IP:$NODE_ADDRESS,DNS:$NODE_NAME"
  for name in admin controllers scheduler kubelet; do kubeconfig "$name"; done
}

# fill FILE: with the folders of this run in the place of their names.
fill() {
  sed -e "s|@ETC@|$ETC|g" -e "s|@PAUSE@|$PAUSE_IMAGE|g" -e "s|@PROGRAMS@|$(kubernetes_bin)|g" \
    -e "s|@NODE_ADDRESS@|$NODE_ADDRESS|g" -e "s|@VMM@|$GANTRY_ROOT/build/vmm|g" \
    -e "s|@RUNSC@|$(runsc_bin "$RUNSC_MODULE")/runsc|g" -e "s|@CLASS@|${COLUMN:-}|g" "$1"
}

# A shim for each handler: links, beside the others of the build.
node_programs() {
  local name file
  for file in "$GANTRY_ROOT"/build/release/bin/*; do
    ln -sf "$file" "$CLUSTER_DIR/bin/${file##*/}"
  done
  for name in gvisor wasm vmm; do
    ln -sf "$GANTRY_ROOT/build/release/bin/containerd-shim-gantry-v1" \
      "$CLUSTER_DIR/bin/containerd-shim-gantry-$name-v1"
  done
}

# node_files gantry|plain
node_files() {
  local file
  mkdir -p "$CLUSTER_DIR/bin" "$ETC/cni"
  [ "$1" = plain ] || node_programs
  for file in containerd.toml gantry.yaml kubelet.yaml; do
    fill "$GANTRY_ROOT/tools/cluster/$file" >"$ETC/$file"
  done
  cp "$GANTRY_ROOT/tools/cluster/bridge.conflist" "$ETC/cni/"
  : >"$ETC/resolv.conf"
}

start_etcd() {
  start etcd etcd --data-dir "$CLUSTER_DIR/lib/etcd" --unsafe-no-fsync --log-level warn
}

start_apiserver() {
  start apiserver kube-apiserver --etcd-servers http://127.0.0.1:2379 --bind-address 0.0.0.0 --secure-port 443 \
    --advertise-address "$NODE_ADDRESS" --authorization-mode Node,RBAC --allow-privileged \
    --enable-admission-plugins NodeRestriction --service-cluster-ip-range 10.96.0.0/16 \
    --client-ca-file "$ETC/ca.crt" --tls-cert-file "$ETC/apiserver.crt" \
    --tls-private-key-file "$ETC/apiserver.key" --cert-dir "$ETC" \
    --kubelet-client-certificate "$ETC/apiserver-client.crt" \
    --kubelet-client-key "$ETC/apiserver-client.key" \
    --kubelet-certificate-authority "$ETC/ca.crt" --kubelet-preferred-address-types InternalIP \
    --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$ETC/accounts.key" \
    --service-account-signing-key-file "$ETC/accounts.key"
}

start_controllers() {
  start controllers kube-controller-manager --kubeconfig "$ETC/controllers.kubeconfig" \
    --leader-elect=false --use-service-account-credentials --root-ca-file "$ETC/ca.crt" \
    --service-account-private-key-file "$ETC/accounts.key"
  start scheduler kube-scheduler --kubeconfig "$ETC/scheduler.kubeconfig" --leader-elect=false
}

# As gantry.service does it at each boot: containerd may ask the sandbox controller first.
start_gantry() {
  start keeper gantry-keeper --foreground
  await 60 "gantry answers" gantryctl status
}

start_containerd() {
  start containerd containerd --config "$CONTAINERD_CONFIG"
  await 60 "containerd answers" ctr version
}

# It ends where containerd has not got its CRI server ready, and is started again then.
start_kubelet() {
  kubelet_process
  await 120 "the kubelet is healthy" kubelet_healthy
}

kubelet_healthy() {
  runs kubelet || kubelet_process
  busybox wget -q -T 5 -O - http://127.0.0.1:10248/healthz
}

# The kubelet sets parameters of the kernel, which are the host's: it finds them as it wants them, in
# files of this cluster's, in a namespace that otherwise has the same mounts.
kubelet_process() {
  # shellcheck disable=SC2016
  start kubelet unshare --mount --propagation unchanged bash -euc '
    mount --make-rprivate /proc
    while read -r file value; do
      echo "$value" >"$0/${file//\//-}"
      mount --bind "$0/${file//\//-}" "/proc/sys/$file"
    done <<PARAMETERS
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
PARAMETERS
    exec "$@"' "$ETC" kubelet --config "$ETC/kubelet.yaml" --kubeconfig "$ETC/kubelet.kubeconfig" \
    --hostname-override "$NODE_NAME" --node-ip "$NODE_ADDRESS" --node-labels io.gantry/kvm=true
}

kubelet_answers() { kubectl get --raw "/api/v1/nodes/$NODE_NAME/proxy/healthz"; }
node_ready() { kubectl wait --for=condition=Ready "node/$NODE_NAME" --timeout=1s; }

import_image() {
  ctr -n k8s.io images import --all-platforms "$IMAGE_DIR/$1.tar" >>"$LOGS/images.log" 2>&1 ||
    die "image $1 cannot be imported: $LOGS/images.log"
}

import_images() {
  local image
  for image in busybox pause "${WASM_IMAGES[@]}"; do import_image "$image"; done
}

# cluster_start COLUMNS: until the node takes pods of these RuntimeClasses; of none: without gantry.
cluster_start() {
  local column begin
  begin=$(date +%s)
  node_keys
  node_files "$([ -n "$1" ] && echo gantry || echo plain)"
  start_etcd
  start_apiserver
  [ -z "$1" ] || start_gantry || die "gantry does not answer: $LOGS/keeper.log"
  start_containerd || die "containerd does not answer: $LOGS/containerd.log"
  import_images
  await 180 "the API server is ready" kubectl get --raw /readyz || die "no API server: $LOGS/apiserver.log"
  start_controllers
  start_kubelet
  await 120 "the node is ready" node_ready || die "the node is not ready: $LOGS/kubelet.log"
  for column in $1; do
    kubectl apply -f "$GANTRY_ROOT/tools/cluster/classes/$column.yaml" >/dev/null
  done
  await 60 "there is a service account" kubectl get serviceaccount default
  say "  ok  a cluster of one node ($(($(date +%s) - begin)) s)"
}

node_stop_all() {
  local name
  for name in kubelet containerd keeper scheduler controllers apiserver etcd; do stop "$name"; done
}

# What a reboot ends: all processes but those of the control plane, which is another node's
# elsewhere, and of what calls this, which are one session.
node_processes_end() {
  local own keep='' name pid session left
  own=$(ps -o sid= -p $$)
  for name in etcd apiserver controllers scheduler; do keep+=" $(cat "$PID_DIR/$name") "; done
  while true; do
    left=
    while read -r pid session; do
      [ "$session" -ne "$own" ] && [ "$pid" -ne 1 ] && [[ "$keep" != *" $session "* ]] || continue
      [[ "$(ps -o stat= -p "$pid")" =~ ^[^Z] ]] || continue
      left=1
      kill -9 "$pid" 2>/dev/null || true
    done < <(ps -eo pid=,sid=)
    [ -n "$left" ] || return 0
    sleep 0.1
  done
}

# node_reboot: processes, mounts, networks and control groups of the node are gone, and so is what was
# in /run; what is on its disk stays. Then containerd and the kubelet start.
node_reboot() {
  local link
  node_processes_end
  awk '$5 ~ "^/(run|var/lib)/" { print $5 }' /proc/self/mountinfo | tac |
    while read -r point; do umount -l "$(printf '%b' "$point")" || true; done
  for link in $(ip -o link show master pods0 2>/dev/null | cut -d: -f2 | cut -d@ -f1) pods0; do
    ip link del "$link" 2>/dev/null || true
  done
  find /run -mindepth 1 -delete
  mkdir -p /run/lock /run/netns
  find /sys/fs/cgroup -mindepth 2 -depth -type d -exec rmdir {} + 2>/dev/null || true
  rm -f "$PID_DIR"/{containerd,keeper,kubelet}
  start_gantry
  start_containerd
  start_kubelet
}

// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/vmm_node.h"

#include <cstdlib>

namespace gantry::e2e {
namespace {

std::string Handler(const std::string& name, const std::string& options) {
  return "  " + name + ":\n    backend: vmm\n    options:\n" + options;
}

/// GANTRY_VMM_ACCEL, kvm or tcg: whoever runs the tests knows it; else what the canary finds.
std::string Accelerator() {
  const char* const wanted = std::getenv("GANTRY_VMM_ACCEL");  // NOLINT(concurrency-mt-unsafe)
  return wanted == nullptr ? "" : "      accelerator: " + std::string(wanted) + "\n";
}

}  // namespace

const std::vector<std::string>& FurtherVmmHandlers() {
  static const std::vector<std::string> all{kVmmPanics, kVmmSilent, kVmmNoKernel};
  return all;
}

std::string VmmFolder(const Settings& settings) { return settings.run_dir + "/vmm"; }

std::string RuntimeOfHandler(const std::string& handler) {
  return "io.containerd.gantry-" + handler + ".v1";
}

// The image of the tests has first processes of theirs: tools/lib/vmm_image.sh.
std::string VmmHandlers(const Settings& settings) {
  return "default_handler: vmm\nbackends:\n  vmm:\n    options:\n      directory: " +
         VmmFolder(settings) + "\n      kernel: " + settings.vmm_image +
         "/kernel\n      initrd: " + settings.vmm_image + "/initrd\n" + Accelerator() +
         "handlers:\n  vmm: {backend: vmm}\n" +
         Handler(kVmmPanics, "      cmdline: rdinit=/tests/devices gantry.end=panic\n") +
         Handler(kVmmSilent,
                 "      cmdline: rdinit=/tests/devices\n      boot_timeout_ms: 10000\n") +
         Handler(kVmmNoKernel, "      kernel: /nowhere/kernel\n");
}

std::string VethPlugin() {
  return R"SH(#!/bin/sh
# A network of both families: a pair of devices, whose end on the node is the pod's gateway.
# By the pod's id, so that pods of several runs have addresses of their own.
set -e
id=$(printf %s "$CNI_CONTAINERID" | sha256sum | cut -c1-4)
a=$((0x$(echo "$id" | cut -c1-2)))
b=$((0x$(echo "$id" | cut -c3-4) / 4 * 4))
node4=198.18.$a.$((b + 1)) pod4=198.18.$a.$((b + 2))
node6=fd67:$id::1 pod6=fd67:$id::2
case "$CNI_COMMAND" in
VERSION) echo '{"cniVersion":"1.0.0","supportedVersions":["0.3.1","0.4.0","1.0.0"]}' ;;
ADD)
  in_pod() { nsenter --net="$CNI_NETNS" ip "$@"; }
  in_pod link set lo up
  if [ "$CNI_IFNAME" = lo ]; then
    printf '{"cniVersion":"1.0.0","interfaces":[{"name":"lo","sandbox":"%s"}],"ips":[{"interface":0,"address":"127.0.0.1/8"}]}' \
      "$CNI_NETNS"
    exit 0
  fi
  ip link add "gv$id" type veth peer name "$CNI_IFNAME" netns "$CNI_NETNS"
  ip addr add "$node4/30" dev "gv$id"
  ip -6 addr add "$node6/64" dev "gv$id" nodad
  ip link set "gv$id" up
  in_pod addr add "$pod4/30" dev "$CNI_IFNAME"
  in_pod -6 addr add "$pod6/64" dev "$CNI_IFNAME" nodad
  in_pod link set "$CNI_IFNAME" mtu 1400 up
  in_pod route add default via "$node4"
  in_pod -6 route add default via "$node6"
  printf '{"cniVersion":"1.0.0","interfaces":[{"name":"%s","sandbox":"%s"}],"ips":[{"interface":0,"address":"%s/30","gateway":"%s"},{"interface":0,"address":"%s/64","gateway":"%s"}]}' \
    "$CNI_IFNAME" "$CNI_NETNS" "$pod4" "$node4" "$pod6" "$node6"
  ;;
DEL) ip link del "gv$id" 2>/dev/null || true ;;
esac
)SH";
}

}  // namespace gantry::e2e

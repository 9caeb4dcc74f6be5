// SPDX-License-Identifier: Apache-2.0
//
// The configuration files of a node: containerd's, whose plugin names differ
// between 1.7 (version 2) and 2.x (version 3), and gantry's.
#include <chrono>
#include <utility>

#include "tests/harness/node.h"
#include "tests/harness/vmm_node.h"

namespace gantry::e2e {
namespace {

std::string Quoted(const std::string& text) { return "\"" + text + "\""; }

std::string Base(const Settings& settings, const std::string& address) {
  return "root = " + Quoted(settings.root + "/root") +
         "\nstate = " + Quoted(settings.root + "/state") +
         "\ntemp = " + Quoted(settings.root + "/tmp") + "\n[grpc]\n  address = " + Quoted(address) +
         "\n";
}

std::string RuntimeTable(const Settings& settings, const std::string& table,
                         const CriRuntime& runtime) {
  const std::string begin = table + ".runtimes." + runtime.name;
  const char* const key = settings.release1() ? "sandbox_mode" : "sandboxer";
  std::string text = begin + "]\n    runtime_type = " + Quoted(runtime.type) + "\n    " + key +
                     " = " + Quoted(runtime.sandboxer) + "\n" +
                     "    pod_annotations = [\"dev.gvisor.*\", \"io.gantry.wasm/*\", "
                     "\"run.oci.handler\"]\n"
                     "    container_annotations = [\"io.gantry.wasm/*\"]\n";
  if (!runtime.io_type.empty()) {
    text += "    io_type = " + Quoted(runtime.io_type) + "\n";
  }
  if (!runtime.path.empty()) {
    text += "    runtime_path = " + Quoted(runtime.path) + "\n";
  }
  if (!runtime.oci.empty()) {
    text += begin + ".options]\n    BinaryName = " + Quoted(runtime.oci) + "\n";
  }
  return text;
}

/// Two handlers, pods with a pause container and pods that the shim makes, and what
/// else the settings have.
std::string RuntimeTables(const Settings& settings, const std::string& table) {
  std::vector<CriRuntime> runtimes = settings.more_runtimes;
  runtimes.push_back(
      {"gantry", settings.runtime, "podsandbox", settings.stock() ? settings.oci : ""});
  runtimes.push_back({"gantry-shim", settings.runtime, "shim", ""});
  if (settings.controllers()) {
    runtimes.push_back({"gantry-controller", settings.runtime, "gantry", ""});
    runtimes.push_back(
        {"gantry-controller-streaming", settings.runtime, "gantry", "", "", "streaming"});
    runtimes.push_back({"gantry-shim-streaming", settings.runtime, "shim", "", "", "streaming"});
  }
  if (settings.runc()) {
    const std::string oci = settings.counted_oci();
    runtimes.push_back({"gantry-options", settings.runtime, "podsandbox", oci});
    runtimes.push_back({"gantry-runc-type", "io.containerd.runc.v2", "podsandbox", oci,
                        settings.gantry_bin + "/containerd-shim-gantry-v1"});
  }
  if (settings.wasm()) {
    // No shim of this type's name is in the PATH.
    runtimes.push_back({"gantry-path", "io.containerd.gantry-elsewhere.v1", "podsandbox", "",
                        settings.gantry_bin + "/containerd-shim-gantry-v1"});
  }
  if (settings.vmm()) {
    for (const std::string& handler : FurtherVmmHandlers()) {
      runtimes.push_back({"gantry-" + handler, RuntimeOfHandler(handler), "podsandbox", ""});
    }
  }
  if (settings.two_backends) {
    // The other backend's handler is named by a link to the shim, and by an option.
    runtimes.push_back({"gantry-remote", "io.containerd.gantry-remote.v1", "podsandbox", ""});
    runtimes.push_back({"gantry-remote-shim", "io.containerd.gantry-remote.v1", "shim", ""});
    runtimes.push_back({"gantry-asked", settings.runtime, "podsandbox", ""});
  }
  std::string text;
  for (const CriRuntime& runtime : runtimes) {
    text += RuntimeTable(settings, table, runtime);
  }
  if (settings.two_backends) {
    text += table + ".runtimes.gantry-asked.options]\n    Handler = \"remote\"\n";
  }
  return text;
}

/// Images as block devices, copied of an empty one: WriteVmmFiles.
std::string Blockfile(const Settings& settings) {
  if (!settings.firecracker()) {
    return "";
  }
  return "[plugins.\"io.containerd.snapshotter.v1.blockfile\"]\n  scratch_file = " +
         Quoted(settings.root + "/scratch.ext4") +
         "\n  fs_type = \"ext4\"\n  mount_options = []\n  recreate_scratch = true\n"
         // Which ctr's import asks for.
         "[[plugins.\"io.containerd.transfer.v1.local\".unpack_config]]\n"
         "  platform = \"linux/amd64\"\n  snapshotter = \"blockfile\"\n";
}

std::string Release1(const Settings& settings, const std::string& address) {
  const std::string cri = "[plugins.\"io.containerd.grpc.v1.cri\"";
  return "version = 2\n" + Base(settings, address) +
         "[plugins.\"io.containerd.internal.v1.opt\"]\n  path = " + Quoted(settings.root + "/opt") +
         "\n" + cri +
         "]\n  sandbox_image = \"registry.k8s.io/pause:gantry\"\n"
         "  restrict_oom_score_adj = true\n  disable_apparmor = true\n" +
         cri + ".containerd]\n    default_runtime_name = \"gantry\"\n    snapshotter = " +
         Quoted(settings.snapshotter()) + "\n" + RuntimeTables(settings, cri + ".containerd") +
         cri + ".cni]\n    conf_dir = " + Quoted(settings.root + "/cni") +
         "\n    bin_dir = " + Quoted(settings.root + "/cni/bin") +
         "\n[plugins.\"io.containerd.nri.v1.nri\"]\n"
         "  disable = true\n";
}

std::string Release2(const Settings& settings, const std::string& address) {
  const std::string runtime = "[plugins.'io.containerd.cri.v1.runtime'";
  const bool before_2_2 = !settings.AtLeast(2, 2);
  return "version = 3\n" + Base(settings, address) +
         "[plugins.'io.containerd.internal.v1.opt']\n  path = " + Quoted(settings.root + "/opt") +
         "\n[plugins.'io.containerd.nri.v1.nri']\n  disable = true\n"
         "[plugins.'io.containerd.cri.v1.images']\n  snapshotter = " +
         Quoted(settings.snapshotter()) +
         "\n[plugins.'io.containerd.cri.v1.images'.pinned_images]\n"
         "  sandbox = \"registry.k8s.io/pause:gantry\"\n" +
         runtime + "]\n  restrict_oom_score_adj = true\n  disable_apparmor = true\n" +
         (before_2_2 ? "" : "  enable_experimental_restore_via_create = true\n") + runtime +
         ".containerd]\n    default_runtime_name = \"gantry\"\n" +
         RuntimeTables(settings, runtime + ".containerd") + runtime +
         ".cni]\n    conf_dir = " + Quoted(settings.root + "/cni") + "\n    " +
         (before_2_2 ? "bin_dir = " : "bin_dirs = [") + Quoted(settings.root + "/cni/bin") +
         (before_2_2 ? "\n" : "]\n");
}

std::string ProxyPlugins(const Settings& settings) {
  return settings.controllers() ? "[proxy_plugins.gantry]\n  type = \"sandbox\"\n  address = " +
                                      Quoted(settings.grpc_address()) + "\n"
                                : "";
}

/// containerd's own, longer by as much as the machine is slower.
std::string Timeouts() {
  constexpr std::pair<const char*, std::chrono::seconds> kDefaults[] = {
      {"shim.cleanup", std::chrono::seconds(5)},
      {"shim.load", std::chrono::seconds(5)},
      {"shim.shutdown", std::chrono::seconds(3)},
      {"task.state", std::chrono::seconds(2)},
  };
  std::string text = "[timeouts]\n";
  for (const auto& [name, limit] : kDefaults) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(Bound(limit)).count();
    text += "  \"io.containerd.timeout." + std::string(name) + "\" = \"" + std::to_string(seconds) +
            "s\"\n";
  }
  return text;
}

}  // namespace

std::string ContainerdConfiguration(const Settings& settings, const std::string& address) {
  return (settings.release1() ? Release1(settings, address) : Release2(settings, address)) +
         Blockfile(settings) + ProxyPlugins(settings) + Timeouts();
}

std::string NetworkConfiguration() {
  return R"({"cniVersion":"1.0.0","name":"test","plugins":[{"type":"test"}]})";
}

std::string NetworkPlugin(const Settings& settings) {
  if (settings.vmm()) {
    return BridgePlugin();
  }
  return R"SH(#!/bin/sh
# A network of nothing but a loopback, which CRI is told has an address.
case "$CNI_COMMAND" in
VERSION) echo '{"cniVersion":"1.0.0","supportedVersions":["0.3.1","0.4.0","1.0.0"]}' ;;
ADD)
  nsenter --net="$CNI_NETNS" ip link set lo up
  printf '{"cniVersion":"1.0.0","interfaces":[{"name":"%s","sandbox":"%s"}],"ips":[{"interface":0,"address":"127.0.0.1/8"}]}' \
    "$CNI_IFNAME" "$CNI_NETNS" ;;
esac
)SH";
}

std::string GantryConfiguration(const Settings& settings) {
  std::string begin = "version: 1\nlog:\n  level: debug\n";
  if (settings.controllers()) {
    begin += "grpc:\n  address: " + settings.grpc_address() +
             "\n  containerd: " + settings.address() + "\n";
  }
  const std::string folder = settings.remote_plugin.substr(0, settings.remote_plugin.rfind('/'));
  const std::string remote =
      "  remote:\n    backend: remote\nbackends:\n  remote:\n    path: " + settings.remote_plugin +
      "\n    options:\n      Server: " + folder + "/fake-remote-sandbox\n      Unconfined: true\n";
  if (settings.remote()) {
    return begin + "default_handler: remote\nhandlers:\n" + remote;
  }
  if (settings.gvisor()) {
    return begin +
           "default_handler: gvisor\nhandlers:\n  gvisor:\n    backend: gvisor\n    options:\n"
           "      binary_name: " +
           settings.RunscOf(settings.runsc_release) + "\n      root: " + settings.root + "/runsc" +
           "\n      runsc_config:\n        platform: systrap\n";
  }
  if (settings.wasm()) {
    return begin +
           "default_handler: wasm\nhandlers:\n  wasm: {backend: wasm}\n"
           "backends:\n  wasm:\n    options:\n      cache_dir: " +
           settings.root + "/wasm\n";
  }
  if (settings.vmm()) {
    return begin + VmmHandlers(settings);
  }
  return begin +
         "handlers:\n  runc:\n    backend: runc\n    options:\n      BinaryName: " + settings.oci +
         // For the test of an OCI runtime that hangs.
         "\n  hasty:\n    backend: runc\n    options:\n      BinaryName: " + settings.root +
         "/hang.sh\n      TimeoutMs: 2000\n" + (settings.two_backends ? remote : "");
}

}  // namespace gantry::e2e

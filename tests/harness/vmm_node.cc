// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/vmm_node.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>

#include <gantry/format.h>

#include "tests/harness/host.h"

namespace gantry::e2e {
namespace {

/// For a guest to boot and say nothing.
const Duration kSilence = Bound(std::chrono::seconds(10));

/// For one to boot, translated, beside others on a busy machine; as much as the option takes.
std::chrono::milliseconds BootTime() {
  constexpr std::chrono::minutes kBoot{2};
  constexpr std::chrono::minutes kMost{10};
  return std::min<std::chrono::milliseconds>(Bound(kBoot), kMost);
}

std::string Handler(const std::string& name, const std::string& options) {
  return "  " + name + ":\n    backend: vmm\n    options:\n" + options;
}

/// GANTRY_VMM_ACCEL, kvm or tcg: whoever runs the tests knows it; else what the canary finds.
std::string Accelerator() {
  const char* const wanted = std::getenv("GANTRY_VMM_ACCEL");  // NOLINT(concurrency-mt-unsafe)
  return wanted == nullptr ? "" : "      accelerator: " + std::string(wanted) + "\n";
}

/// A VMM that opens its taps itself needs what udev makes of the device; as root it does not.
bool IsTunForAll() {
  constexpr mode_t kOthers = S_IROTH | S_IWOTH;
  struct stat tun{};
  return stat("/dev/net/tun", &tun) == 0 && (tun.st_mode & kOthers) == kOthers;
}

/// Of a hypervisor that stands for another one its guests are translated, whatever else the node
/// can.
std::string Hypervisor(const Settings& settings) {
  if (settings.hypervisor == "qemu") {
    return Accelerator();
  }
  const char* const users = settings.firecracker() && !IsTunForAll() ? "      users: 0\n" : "";
  return "      vmm: " + settings.hypervisor + "\n      vmm_path: " + settings.doubles + "/" +
         settings.hypervisor + "\n      accelerator: tcg\n" + users;
}

/// An ELF program for AArch64, of which there is nothing but its head.
std::string OtherProgram() {
  constexpr char kAarch64 = static_cast<char>(183);
  std::string elf =
      "\x7f"
      "ELF"
      "\x02\x01\x01";
  elf.resize(size_t{64} << 10);
  elf[16] = 2;  // e_type: it can be executed.
  elf[18] = kAarch64;
  elf[20] = 1;
  elf[52] = 64;
  return elf;
}

/// One file of an archive as the kernel unpacks it, newc.
std::string Archived(const std::string& name, const std::string& data) {
  constexpr unsigned kProgram = 0100755;
  const std::array<size_t, 13> fields = {1, kProgram,        0, 0, 1, 0, data.size(), 0, 0, 0,
                                         0, name.size() + 1, 0};
  std::string text = "070701";
  for (const size_t field : fields) {
    text += Format("{:08x}", field);
  }
  const auto pad = [&] { text.resize((text.size() + 3) / 4 * 4); };
  text += name + std::string(1, '\0');
  pad();
  text += data;
  pad();
  return text;
}

}  // namespace

const std::vector<std::string>& FurtherVmmHandlers() {
  static const std::vector<std::string> all{kVmmPanics,   kVmmSilent,      kVmmNoKernel,
                                            kVmmNoInitrd, kVmmOtherKernel, kVmmOtherInitrd};
  return all;
}

void WriteVmmFiles(const Settings& settings) {
  WriteText(settings.root + "/other-kernel", OtherProgram());
  WriteText(settings.root + "/other-initrd",
            Archived("init", OtherProgram()) + Archived("TRAILER!!!", ""));
  if (settings.firecracker()) {
    RunProgram({"mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", settings.root + "/scratch.ext4",
                "24M"});
  }
}

std::string VmmFolder(const Settings& settings) { return settings.run_dir + "/vmm"; }

std::string RuntimeOfHandler(const std::string& handler) {
  return "io.containerd.gantry-" + handler + ".v1";
}

// The image of the tests has first processes of theirs: tools/lib/vmm_image.sh.
std::string VmmHandlers(const Settings& settings) {
  return "default_handler: vmm\nbackends:\n  vmm:\n    options:\n      directory: " +
         VmmFolder(settings) + "\n      kernel: " + settings.vmm_image +
         "/kernel\n      initrd: " + settings.vmm_image +
         "/initrd\n      boot_timeout_ms: " + std::to_string(BootTime().count()) + "\n" +
         Hypervisor(settings) + "handlers:\n  vmm: {backend: vmm}\n" +
         Handler(kVmmPanics, "      cmdline: rdinit=/tests/devices gantry.end=panic\n") +
         Handler(kVmmSilent, "      cmdline: rdinit=/tests/devices\n      boot_timeout_ms: " +
                                 std::to_string(kSilence.count()) + "\n") +
         Handler(kVmmNoKernel, "      kernel: /nowhere/kernel\n") +
         Handler(kVmmNoInitrd, "      initrd: /nowhere/initrd\n") +
         Handler(kVmmOtherKernel, "      kernel: " + settings.root + "/other-kernel\n") +
         Handler(kVmmOtherInitrd, "      initrd: " + settings.root + "/other-initrd\n");
}

std::string BridgePlugin() {
  return R"SH(#!/bin/sh
# A bridge of both families, the gateway of all pods of this run, whose folder this file is in: two
# runs have networks of their own.
set -e
run=$(printf %s "$0" | sha256sum | cut -c1-4)
id=$(printf %s "$CNI_CONTAINERID" | sha256sum | cut -c1-8)
bridge=gb$run port=gv$id
net4=198.$((18 + 0x$run / 256 % 2)).$((0x$run % 256)) net6=fd67:$(printf %x $((0x$run | 0x1000))):
in_pod() { nsenter --net="$CNI_NETNS" ip "$@"; }
exec 9>>"$0.pods"
flock 9
case "$CNI_COMMAND" in
VERSION) echo '{"cniVersion":"1.0.0","supportedVersions":["0.3.1","0.4.0","1.0.0"]}' ;;
ADD)
  in_pod link set lo up
  if [ "$CNI_IFNAME" = lo ]; then
    printf '{"cniVersion":"1.0.0","interfaces":[{"name":"lo","sandbox":"%s"}],"ips":[{"interface":0,"address":"127.0.0.1/8"}]}' \
      "$CNI_NETNS"
    exit 0
  fi
  if [ ! -e "/sys/class/net/$bridge" ]; then
    # With a MAC of its own, or it changes with its ports.
    ip link add "$bridge" address "02:67:00:00:$(echo "$run" | sed 's/../&:/')" type bridge
    ip addr add "$net4.1/24" dev "$bridge"
    ip -6 addr add "$net6:1/64" dev "$bridge" nodad
    ip link set "$bridge" up
  fi
  pod=$(($(wc -l <"$0.pods") % 250 + 2))
  pod6=$net6:$(printf %x "$pod")
  echo "$CNI_CONTAINERID $net4.$pod $pod6" >&9
  ip link add "$port" mtu 1400 type veth peer name "$CNI_IFNAME" mtu 1400 netns "$CNI_NETNS"
  ip link set "$port" master "$bridge" up
  in_pod addr add "$net4.$pod/24" dev "$CNI_IFNAME"
  in_pod -6 addr add "$pod6/64" dev "$CNI_IFNAME" nodad
  in_pod link set "$CNI_IFNAME" up
  in_pod route add default via "$net4.1"
  in_pod -6 route add default via "$net6:1"
  printf '{"cniVersion":"1.0.0","interfaces":[{"name":"%s","sandbox":"%s"}],"ips":[{"interface":0,"address":"%s/24","gateway":"%s"},{"interface":0,"address":"%s/64","gateway":"%s"}]}' \
    "$CNI_IFNAME" "$CNI_NETNS" "$net4.$pod" "$net4.1" "$pod6" "$net6:1"
  ;;
DEL)
  ip link del "$port" 2>/dev/null || true
  [ -n "$(ls "/sys/class/net/$bridge/brif" 2>/dev/null)" ] || ip link del "$bridge" 2>/dev/null || true
  ;;
esac
)SH";
}

}  // namespace gantry::e2e

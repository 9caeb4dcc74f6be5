// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm/vsock/initrd.h"

#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::vmm {
namespace {

constexpr size_t kMostBytes = 64 << 20;
constexpr unsigned kDirectory = S_IFDIR | 0755;
constexpr unsigned kProgram = S_IFREG | 0755;
constexpr unsigned kDevice = S_IFCHR | 0600;

class Archive {
 public:
  /// `device`: its minor number, the major one being 5.
  void Add(std::string_view name, unsigned mode, std::string_view content, unsigned device = 0) {
    ++inode_;
    text_ += Format(
        "070701{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}"
        "{:08X}",
        inode_, mode, 0, 0, 1, 0, content.size(), 0, 0, device == 0 ? 0 : 5, device,
        name.size() + 1, 0);
    text_ += name;
    text_ += '\0';
    Pad();
    text_ += content;
    Pad();
  }

  const std::string& Finish() {
    Add("TRAILER!!!", 0, "");
    return text_;
  }

 private:
  void Pad() { text_.append((4 - text_.size() % 4) % 4, '\0'); }

  std::string text_;
  unsigned inode_ = 0;
};

bool IsWanted(const std::string& module) {
  constexpr std::array<std::string_view, 8> kWanted{"virtio_ring",
                                                    "virtio",
                                                    "virtio_pci_legacy_dev",
                                                    "virtio_pci",
                                                    "vsock",
                                                    "virtio_pci_modern_dev",
                                                    "vmw_vsock_virtio_transport_common",
                                                    "vmw_vsock_virtio_transport"};
  for (const std::string_view one : kWanted) {
    if (module == Format("{}.ko", one) || module == Format("{}.ko.xz", one)) {
      return true;
    }
  }
  return false;
}

}  // namespace

Result<std::string> KernelBelow(const std::string& kernel_root) {
  std::error_code error;
  for (const auto& one : std::filesystem::directory_iterator(kernel_root + "/boot", error)) {
    if (one.path().filename().string().starts_with("vmlinuz-")) {
      return one.path().string();
    }
  }
  return Fail(Code::kNotFound, "find a kernel: no '{}/boot/vmlinuz-*'", kernel_root);
}

Status WriteInitrd(const std::string& kernel_root, const std::string& program,
                   const std::string& to) {
  Archive archive;
  archive.Add("dev", kDirectory, "");
  archive.Add("dev/console", kDevice, "", 1);
  archive.Add("modules", kDirectory, "");
  GANTRY_TRY(const std::string init, ReadFile(program, kMostBytes));
  archive.Add("init", kProgram, init);
  std::error_code error;
  for (const auto& one :
       std::filesystem::recursive_directory_iterator(kernel_root + "/lib/modules", error)) {
    const std::string name = one.path().filename().string();
    if (IsWanted(name)) {
      GANTRY_TRY(const std::string module, ReadFile(one.path().string(), kMostBytes));
      archive.Add("modules/" + name, kProgram, module);
    }
  }
  std::ofstream file(to, std::ios::binary);
  file << archive.Finish();
  if (!file.flush()) {
    return Fail(Code::kInternal, "write '{}'", to);
  }
  return {};
}

}  // namespace gantry::vmm

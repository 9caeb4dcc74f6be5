// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/options.h"

#include <array>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/toolkit/options/options.h>

#include "plugins/vmm/hypervisor/cloud_hypervisor/cloud_hypervisor.h"
#include "plugins/vmm/hypervisor/firecracker/firecracker.h"

namespace gantry::vmm {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kMostMib = 1U << 24;

/// One of a few words, each of which means a value.
template <class Value, size_t Count>
OptionSetter<VmmOptions> Word(Value VmmOptions::* field,
                              std::array<std::pair<std::string_view, Value>, Count> words) {
  return [field, words](VmmOptions& options, const std::string& key, const Json& value) -> Status {
    GANTRY_TRY(const std::string text, options::TextOf(key, value));
    std::string all;
    for (const auto& [word, meaning] : words) {
      if (text == word) {
        options.*field = meaning;
        return {};
      }
      all += all.empty() ? std::string(word) : Format(", {}", word);
    }
    return Fail(Code::kInvalidArgument, "check option '{}': must be one of {}, is '{}'", key, all,
                text.substr(0, 80));
  };
}

/// The same for a field of the files' options.
template <class Setter>
OptionSetter<VmmOptions> OfStorage(Setter setter) {
  return [setter = std::move(setter)](VmmOptions& options, const std::string& key,
                                      const Json& value) -> Status {
    return setter(options.storage, key, value);
  };
}

Status SetCache(StorageOptions& options, const std::string& key, const Json& value) {
  GANTRY_TRY(std::string text, options::TextOf(key, value));
  if (text != "auto" && text != "metadata" && text != "never" && text != "always") {
    return Fail(Code::kInvalidArgument,
                "check option '{}': must be one of auto, metadata, never, always, is '{}'", key,
                text.substr(0, 80));
  }
  options.cache = std::move(text);
  return {};
}

Status SetRootFs(StorageOptions& options, const std::string& key, const Json& value) {
  GANTRY_TRY(const std::string text, options::TextOf(key, value));
  if (text != "auto" && text != "block" && text != "virtiofs") {
    return Fail(Code::kInvalidArgument,
                "check option '{}': must be one of auto, block, virtiofs, is '{}'", key,
                text.substr(0, 80));
  }
  options.block_roots = text != "virtiofs";
  options.virtiofs_roots = text != "block";
  return {};
}

/// It goes onto a command line of one line, behind the others.
Status SetCmdline(VmmOptions& options, const std::string& key, const Json& value) {
  constexpr size_t kMost = 1024;
  GANTRY_TRY(std::string text, options::TextOf(key, value));
  if (text.size() > kMost || text.contains('\n')) {
    return Fail(Code::kInvalidArgument, "check option '{}': one line of at most {} bytes", key,
                kMost);
  }
  options.cmdline = std::move(text);
  return {};
}

Status SetDirectory(VmmOptions& options, const std::string& key, const Json& value) {
  GANTRY_TRY(std::string path, options::AbsolutePathOf(key, value));
  path = std::filesystem::path(path).lexically_normal().string();
  if (path.size() > kMaxBaseDirectory || path.size() < 2) {
    return Fail(Code::kInvalidArgument,
                "check option '{}': a path of at most {} bytes, for the sockets below it", key,
                kMaxBaseDirectory);
  }
  options.directory = std::move(path);
  return {};
}

/// What a VM and its VMM are.
OptionTable<VmmOptions> MachineKeys() {
  constexpr uint32_t kMostMs = 600'000;
  constexpr uint32_t kLeastMib = 64;
  constexpr uint32_t kMostTemplates = 64;
  return {
      {"vmm", Word<Vmm, 3>(&VmmOptions::vmm, {{{"qemu", Vmm::kQemu},
                                               {"cloud-hypervisor", Vmm::kCloudHypervisor},
                                               {"firecracker", Vmm::kFirecracker}}})},
      {"vmm_path", options::PathOrNone(&VmmOptions::vmm_path)},
      {"machine",
       Word<QemuMachine, 2>(&VmmOptions::machine,
                            {{{"q35", QemuMachine::kQ35}, {"microvm", QemuMachine::kMicrovm}}})},
      {"accelerator",
       Word<AcceleratorChoice, 3>(&VmmOptions::accelerator, {{{"auto", AcceleratorChoice::kAuto},
                                                              {"kvm", AcceleratorChoice::kKvm},
                                                              {"tcg", AcceleratorChoice::kTcg}}})},
      {"kernel", options::PathOrNone(&VmmOptions::kernel)},
      {"initrd", options::PathOrNone(&VmmOptions::initrd)},
      {"cmdline", SetCmdline},
      {"boot_timeout_ms", options::Duration(&VmmOptions::boot_timeout, kMostMs)},
      {"cpus", options::Number(&VmmOptions::cpus, 1, kMaxCpus)},
      {"memory_mib", options::Number(&VmmOptions::memory_mib, kLeastMib, kMostMib)},
      {"max_cpus", options::Number(&VmmOptions::max_cpus, 0, kMaxCpus)},
      {"max_memory_mib", options::Number(&VmmOptions::max_memory_mib, 0, kMostMib)},
      {"balloon", options::Flag(&VmmOptions::balloon)},
      {"hotplug_ports", options::Number(&VmmOptions::hotplug_ports, 0, kMaxHotplugPorts)},
      {"template", options::Number(&VmmOptions::templates, 0, kMostTemplates)},
  };
}

/// Its surroundings on the node.
OptionTable<VmmOptions> NodeKeys() {
  constexpr uint32_t kLastUser = 2'000'000'000;
  constexpr uint32_t kMostUsers = 1U << 20;
  return {
      {"virtiofsd", OfStorage(options::AbsolutePath(&StorageOptions::virtiofsd))},
      {"virtiofs_cache", OfStorage(SetCache)},
      {"root_fs", OfStorage(SetRootFs)},
      {"writable_layer_mib",
       OfStorage(options::Number(&StorageOptions::writable_layer_mib, 0, kMostMib))},
      {"layers_directory", OfStorage(options::PathOrNone(&StorageOptions::layers_directory))},
      {"first_user", options::Number(&VmmOptions::first_user, 1, kLastUser)},
      {"users", options::Number(&VmmOptions::users, 0, kMostUsers)},
      {"own_root", options::Flag(&VmmOptions::own_root)},
      {"directory", SetDirectory},
  };
}

const OptionTable<VmmOptions>& Table() {
  static const OptionTable<VmmOptions> table = [] {
    OptionTable<VmmOptions> all = MachineKeys();
    all.merge(NodeKeys());
    return all;
  }();
  return table;
}

/// What single keys cannot say.
Status CheckTogether(const VmmOptions& options) {
  if (options.max_cpus != 0 && options.max_cpus < options.cpus) {
    return Fail(Code::kInvalidArgument, "check option 'max_cpus': {} is less than the {} of 'cpus'",
                options.max_cpus, options.cpus);
  }
  if (options.max_memory_mib != 0 && options.max_memory_mib < options.memory_mib) {
    return Fail(Code::kInvalidArgument,
                "check option 'max_memory_mib': {} is less than the {} of 'memory_mib'",
                options.max_memory_mib, options.memory_mib);
  }
  // Whoever names a program of his own knows what that can.
  if (options.accelerator == AcceleratorChoice::kTcg && options.vmm != Vmm::kQemu &&
      options.vmm_path.empty()) {
    return Fail(Code::kInvalidArgument,
                "check option 'accelerator': {} has no tcg, which is QEMU's alone",
                VmmName(options.vmm));
  }
  if (options.templates > 0 && options.vmm != Vmm::kQemu) {
    return Fail(Code::kInvalidArgument,
                "check option 'template': templates are QEMU's alone so far, not {}'s: set it to 0",
                VmmName(options.vmm));
  }
  if (options.templates > 0 && options.hotplug_ports + kTemplatePlaces > kMaxHotplugPorts) {
    return Fail(Code::kInvalidArgument,
                "check option 'hotplug_ports': with 'template' at most {}: {} more are for what a "
                "machine gets when it is restored",
                kMaxHotplugPorts - kTemplatePlaces, kTemplatePlaces);
  }
  return {};
}

}  // namespace

Result<VmmOptions> ParseOptions(const std::string& text, VmmOptions base,
                                std::vector<std::string>* unknown) {
  GANTRY_TRY(VmmOptions read, options::Read(text, std::move(base), Table(), "vmm", unknown));
  GANTRY_CHECK_OK(CheckTogether(read));
  return read;
}

std::string VmmProgram(const VmmOptions& options) {
  if (!options.vmm_path.empty()) {
    return options.vmm_path;
  }
  switch (options.vmm) {
    case Vmm::kQemu:
      return QemuOptions().program;
    case Vmm::kCloudHypervisor:
      return CloudHypervisorOptions().program;
    case Vmm::kFirecracker:
      break;
  }
  return FirecrackerOptions().program;
}

}  // namespace gantry::vmm

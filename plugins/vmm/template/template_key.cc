// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/template/template_key.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/files/file_identity.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/machine/config.h"

namespace gantry::vmm {
namespace {

/// Another one: what a VM of a template consists of is different.
constexpr int kLayout = 1;
constexpr size_t kMaxCpuinfo = size_t{4} << 20;

Result<std::string> FileText(const std::string& path) {
  const auto file = FileIdentity::Of(path);
  if (!file) {
    return Fail(Code::kFailedPrecondition, "look at '{}', which a template depends on: {}", path,
                file.error().message);
  }
  return Format("{} {} {} {} {}", path, file->device, file->inode, file->size, file->changed_ns);
}

std::string NodeKernel() {
  utsname name{};
  return uname(&name) == 0 ? Format("{} {}", name.release, name.version) : std::string();
}

/// Read once: it does not change while an engine runs, and it is long.
const std::string& Processor() {
  static const std::string text =
      ProcessorIn(ReadFile("/proc/cpuinfo", kMaxCpuinfo).value_or(std::string()));
  return text;
}

}  // namespace

std::string ProcessorIn(const std::string& cpuinfo) {
  constexpr std::array<std::string_view, 7> kKnown = {
      "vendor_id", "cpu family", "model", "model name", "stepping", "microcode", "flags"};
  std::string text;
  for (const auto part : std::views::split(cpuinfo, '\n')) {
    const std::string_view line(part);
    if (line.empty()) {
      break;
    }
    const size_t colon = line.find(':');
    const std::string_view name = line.substr(0, std::min(line.find('\t'), colon));
    if (colon != std::string_view::npos && std::ranges::contains(kKnown, name)) {
      text += Format("{}{};", name, line.substr(colon));
    }
  }
  return text;
}

Result<std::string> TemplateKey(const MachineRequest& request, Accelerator accelerator) {
  const VmmOptions& options = request.options;
  GANTRY_TRY(const VmConfig config,
             ConfigOf(request, accelerator, MachineDirectory(request.directory)));
  GANTRY_TRY(const std::string vmm, FileText(VmmProgram(options)));
  GANTRY_TRY(const std::string kernel, FileText(options.kernel));
  GANTRY_TRY(const std::string initrd, FileText(options.initrd));
  const Memory& memory = config.memory;
  return Format("layout {}\n", kLayout) + Format("vmm {}\n", vmm) + Format("kernel {}\n", kernel) +
         Format("initrd {}\n", initrd) + Format("node {}\n", NodeKernel()) +
         Format("processor {}\n", Processor()) +
         Format("machine {} {} {}\n", static_cast<int>(options.vmm),
                static_cast<int>(options.machine), static_cast<int>(accelerator)) +
         Format("size {} {} {} {} {} {}\n", config.cpus.boot, config.cpus.max, memory.bytes,
                memory.max_bytes, config.hotplug_ports, config.balloon) +
         Format("cmdline {}\n", config.cmdline) +
         Format("place {} {} {}\n", options.directory, options.first_user, options.users);
}

}  // namespace gantry::vmm

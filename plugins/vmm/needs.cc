// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/needs.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/ask_program.h>

#include "plugins/vmm/machine/canary.h"
#include "plugins/vmm/machine/image.h"

namespace gantry::vmm {
namespace {

constexpr size_t kMaxShown = 200;

/// The first line that it says of itself; empty: it cannot be run.
std::string VersionOf(const std::string& program) {
  std::string line =
      AskProgram({.program = program, .arguments = {"--version"}, .with_errors = true})
          .value_or(std::string());
  line.resize(std::min({line.find('\n'), line.size(), kMaxShown}));
  std::ranges::replace_if(line, [](char c) { return c < ' ' || c > '~'; }, '?');
  return line;
}

NodeNeed ProgramNeed(std::string what, const std::string& program, std::string_view how) {
  NodeNeed need;
  need.what = std::move(what);
  if (!IsExecutable(program)) {
    need.detail = Format("'{}' is no program: {}", program, how);
    return need;
  }
  const std::string version = VersionOf(program);
  need.met = !version.empty();
  need.detail = need.met ? Format("{}: {}", program, version)
                         : Format("'{}' does not answer: install it again", program);
  return need;
}

std::string_view PackageOf(Vmm vmm) {
  switch (vmm) {
    case Vmm::kQemu:
      return "install qemu-system-x86, or name its path by the option 'vmm_path'";
    case Vmm::kCloudHypervisor:
      return "install Cloud Hypervisor, or name its path by the option 'vmm_path'";
    case Vmm::kFirecracker:
      break;
  }
  return "install Firecracker, or name its path by the option 'vmm_path'";
}

/// Without KVM QEMU goes on by itself: slow, and no failure.
NodeNeed AcceleratorNeed(const VmmOptions& options, const Acceleration& found) {
  const auto decided = Decide(options, found);
  NodeNeed need;
  need.what =
      "KVM, without which QEMU translates guests (many times slower), and other VMMs "
      "do not run";
  need.met = found.accelerator == Accelerator::kKvm;
  need.optional = decided.has_value();
  need.detail = found.words;
  return need;
}

NodeNeed ImageNeed(const VmmOptions& options, const std::string& images) {
  const auto image = FindImage(options, images);
  NodeNeed need;
  need.what = "the guest image: a kernel, and an initrd with the agent";
  need.met = image.has_value();
  if (image) {
    need.detail =
        Format("{}, {}{}{}{}", image->kernel, image->initrd, image->versions.empty() ? "" : " (",
               image->versions, image->versions.empty() ? "" : ")");
  } else {
    need.detail = image.error().message;
  }
  return need;
}

NodeNeed VirtiofsdNeed(const VmmOptions& options) {
  NodeNeed need = ProgramNeed("virtiofsd, for volumes and for roots that are no block images",
                              options.storage.virtiofsd,
                              "install virtiofsd, or name its path by the option 'virtiofsd'");
  need.optional = true;
  return need;
}

/// Its snapshots with their memory are of 9.0. Source: QEMU 9.0,
/// docs/devel/migration/mapped-ram.rst.
NodeNeed TemplateNeed(const VmmOptions& options) {
  constexpr std::string_view kVersion = " version ";
  constexpr int64_t kFirst = 9;
  NodeNeed need;
  need.what = "QEMU 9.0 or newer, for the option 'template'";
  need.optional = true;
  const std::string line = VersionOf(VmmProgram(options));
  const size_t at = line.find(kVersion);
  const std::string number = at == std::string::npos ? "" : line.substr(at + kVersion.size());
  need.met = ParseNumber(number.substr(0, number.find('.'))).value_or(0) >= kFirst;
  need.detail = need.met ? line : Format("'{}': pods are booted: install a newer one", line);
  return need;
}

NodeNeed TunNeed() {
  constexpr const char* kTun = "/dev/net/tun";
  const bool met = access(kTun, R_OK | W_OK) == 0;
  return {.what = "TUN, for pods with a network",
          .met = met,
          .detail = met ? kTun : Format("{}: not there: load the module tun", kTun)};
}

}  // namespace

std::vector<NodeNeed> FindNeeds(const VmmOptions& options, const Acceleration& found,
                                const std::string& images) {
  std::vector<NodeNeed> needs = {ProgramNeed(Format("{}, the VMM", VmmName(options.vmm)),
                                             VmmProgram(options), PackageOf(options.vmm)),
                                 AcceleratorNeed(options, found), ImageNeed(options, images),
                                 VirtiofsdNeed(options), TunNeed()};
  if (options.templates > 0) {
    needs.push_back(TemplateNeed(options));
  }
  return needs;
}

}  // namespace gantry::vmm

// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/image.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::vmm {
namespace {

constexpr size_t kMaxVersions = 4096;

/// `option` is what names it; `chosen`, where the options name none, lies in `directory`.
Result<std::string> FindFile(const std::string& option, const std::string& chosen,
                             const std::string& directory) {
  std::string path = chosen.empty() ? Format("{}/{}", directory, option) : chosen;
  if (access(path.c_str(), R_OK) == 0) {
    return path;
  }
  const int error = errno;
  if (chosen.empty()) {
    return Fail(Code::kFailedPrecondition,
                "find the guest's {} '{}': {}: install the guest image (tools/vmm/make-image "
                "makes it), or name a file by the option '{}'",
                option, path, ErrnoName(error), option);
  }
  return Fail(Code::kFailedPrecondition,
              "find the guest's {} '{}' (option '{}'): {}: correct the option, or leave it out "
              "for the installed one",
              option, path, option, ErrnoName(error));
}

/// In one line.
std::string VersionsIn(const std::string& directory) {
  std::string text = ReadFile(directory + "/versions", kMaxVersions).value_or(std::string());
  while (text.ends_with('\n')) {
    text.pop_back();
  }
  std::string line;
  for (const char c : text) {
    line += c == '\n' ? std::string(", ") : std::string(1, c >= ' ' && c <= '~' ? c : '?');
  }
  return line;
}

}  // namespace

Result<GuestImage> FindImage(const VmmOptions& options, const std::string& directory) {
  GuestImage image;
  GANTRY_TRY(image.kernel, FindFile("kernel", options.kernel, directory));
  GANTRY_TRY(image.initrd, FindFile("initrd", options.initrd, directory));
  if (options.kernel.empty() && options.initrd.empty()) {
    image.versions = VersionsIn(directory);
  }
  return image;
}

std::string InstalledImages() {
  // Read once at start-up, before anyone could change the environment.
  const char* const chosen = std::getenv("GANTRY_VMM_IMAGE");  // NOLINT(concurrency-mt-unsafe)
  if (chosen != nullptr && *chosen == '/') {
    return chosen;
  }
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&InstalledImages), &info) == 0 ||
      info.dli_fname == nullptr) {
    return "/usr/libexec/gantry/vmm";
  }
  // LIBEXEC/gantry/plugins/libgantry_vmm.so
  const std::string file = info.dli_fname;
  const std::string plugins = file.substr(0, file.find_last_of('/'));
  return plugins + "/vmm";
}

}  // namespace gantry::vmm

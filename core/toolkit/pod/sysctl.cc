// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <ranges>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/pod/sysctl.h>

namespace gantry {
namespace {

/// With slashes between the parts, and dots within them.
std::string WithSlashes(std::string name) {
  const size_t first = name.find_first_of("./");
  if (first != std::string::npos && name[first] == '.') {
    for (char& c : name) {
      c = c == '.' ? '/' : c == '/' ? '.' : c;
    }
  }
  return name;
}

bool IsPart(std::string_view part) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:-.";
  return !part.empty() && part != "." && part != ".." &&
         part.find_first_not_of(kLetters) == std::string_view::npos;
}

bool IsPath(std::string_view path) {
  return std::ranges::all_of(path | std::views::split('/'), [](const auto& part) {
    return IsPart(std::string_view(part.begin(), part.end()));
  });
}

/// What of /proc/sys is each namespace's own. Source: namespaces(7),
/// ipc_namespaces(7), runc 1.3 libcontainer/configs/validate.
bool IsOfIpc(std::string_view path) {
  constexpr std::array<std::string_view, 8> kPaths = {
      "kernel/msgmax", "kernel/msgmnb", "kernel/msgmni", "kernel/sem",
      "kernel/shmall", "kernel/shmmax", "kernel/shmmni", "kernel/shm_rmid_forced"};
  return std::ranges::contains(kPaths, path) || path.starts_with("fs/mqueue/");
}

bool IsOwn(std::string_view path, const OwnNamespaces& own) {
  return (own.ipc && IsOfIpc(path)) || (own.net && path.starts_with("net/")) ||
         (own.uts && path == "kernel/domainname");
}

}  // namespace

Result<std::string> SysctlPath(const std::string& name, const OwnNamespaces& own) {
  std::string path = WithSlashes(name);
  if (!IsPath(path)) {
    return Fail(Code::kInvalidArgument,
                "sysctl '{}': not a name; its parts are of letters, digits and '_:-'", name);
  }
  if (!IsOwn(path, own)) {
    return Fail(Code::kInvalidArgument,
                "sysctl '{}': not of a namespace of the pod's own, it would change the node", name);
  }
  return path;
}

}  // namespace gantry

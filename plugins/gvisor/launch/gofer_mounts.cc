// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/gofer_mounts.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/toolkit/json/json_end.h>

namespace gantry::gvisor {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxQuestion = size_t{256} << 10;

/// One question; empty: the gofer has closed its end.
Result<std::string> Receive(const UniqueFd& socket, Deadline deadline) {
  JsonEnd end;
  std::string text;
  std::array<char, 4096> buffer{};
  while (end.state() != JsonEnd::State::kEnded) {
    pollfd one = {socket.get(), POLLIN, 0};
    if (poll(&one, 1, PollTimeout(deadline)) == 0) {
      return Fail(Code::kDeadlineExceeded, "hear what mounts a gofer asks for: it is silent");
    }
    const ssize_t n = recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      return std::string();
    }
    const std::string_view bytes(buffer.data(), static_cast<size_t>(n));
    end.Feed(bytes);
    text.append(bytes);
    if (text.size() > kMaxQuestion || end.state() == JsonEnd::State::kNoObject) {
      return Fail(Code::kInternal, "hear what mounts a gofer asks for: it is no question");
    }
  }
  return text;
}

Status Send(const UniqueFd& socket, const std::string& text, int fd) {
  iovec bytes{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  }
  if (sendmsg(socket.get(), &message, MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
    return FailErrno(errno, "answer a gofer");
  }
  return {};
}

bool IsMapped(const Json& mount) {
  return mount.contains("uidMappings") || mount.contains("gidMappings");
}

/// As the gofer's own mount namespace has it, which was the starter's.
Result<UniqueFd> OpenPlain(HostPid gofer, const std::string& source) {
  const std::string path = Format("/proc/{}/root{}", gofer.value, source);
  UniqueFd fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd) {
    return FailErrno(errno, "open '{}'", path);
  }
  return fd;
}

/// The container's mappings are the gofer's: its user namespace has them.
Result<UniqueFd> OpenMapped(HostPid gofer, const std::string& source, bool recursive) {
  const unsigned int below = recursive ? AT_RECURSIVE : 0;
  const UniqueFd space(open(Format("/proc/{}/ns/user", gofer.value).c_str(), O_RDONLY | O_CLOEXEC));
  UniqueFd tree(static_cast<int>(syscall(SYS_open_tree, AT_FDCWD, source.c_str(),
                                         OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | below)));
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP;
  attributes.userns_fd = static_cast<uint64_t>(space.get());
  if (!space || !tree ||
      syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH | below, &attributes,
              sizeof(attributes)) != 0) {
    return FailErrno(errno, "map the ids of the mount '{}'", source);
  }
  return tree;
}

Result<UniqueFd> Open(const Json& mount, HostPid gofer, const Spec& spec) {
  const auto& source = mount["source"].get_ref<const std::string&>();
  if (!std::ranges::contains(spec.mounts, source, &FileMount::source)) {
    return Fail(Code::kPermissionDenied, "open the mount '{}': the spec has none such", source);
  }
  if (!IsMapped(mount)) {
    return OpenPlain(gofer, source);
  }
  const auto options = mount.find("options");
  const bool recursive =
      options != mount.end() && std::ranges::any_of(*options, [](const Json& one) {
        return one == "rbind" || one == "ridmap";
      });
  return OpenMapped(gofer, source, recursive);
}

const Json& ValueOf(const Json& object, const char* name) {
  static const Json none;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? none : *found;
}

/// The mount that is asked for; null: it is no question.
const Json* MountIn(const Json& question) {
  const Json& mount = ValueOf(ValueOf(question, "arg"), "Mount");
  const bool is_question = ValueOf(question, "method") == "goferToHostRPC.OpenMount" &&
                           ValueOf(mount, "source").is_string();
  return is_question ? &mount : nullptr;
}

Status Answer(const UniqueFd& socket, const std::string& text, HostPid gofer, const Spec& spec) {
  const Json question = ReadJson(text);
  const Json* const mount = MountIn(question);
  if (mount == nullptr) {
    return Fail(Code::kInternal, "hear what mounts a gofer asks for: not understood: {}",
                text.substr(0, 200));
  }
  const auto opened = Open(*mount, gofer, spec);
  const Json answer = {{"success", opened.has_value()},
                       {"err", opened ? "" : opened.error().message},
                       {"result", Json::object()}};
  return Send(socket, answer.dump(-1, ' ', false, Json::error_handler_t::replace),
              opened ? opened->get() : -1);
}

}  // namespace

Status ServeMounts(const UniqueFd& socket, HostPid gofer, const Spec& spec, Deadline deadline) {
  while (true) {
    GANTRY_TRY(const std::string question, Receive(socket, deadline));
    if (question.empty()) {
      return {};
    }
    GANTRY_CHECK_OK(Answer(socket, question, gofer, spec));
  }
}

}  // namespace gantry::gvisor

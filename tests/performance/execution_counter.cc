// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/execution_counter.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace gantry::bench {
namespace {

constexpr int kReceiveBytes = 8 << 20;
constexpr auto kTail = std::chrono::milliseconds(500);

/// The request to be told: netlink header, connector header, operation.
std::string ListenRequest() {
  const uint32_t operation = PROC_CN_MCAST_LISTEN;
  nlmsghdr header{};
  header.nlmsg_len = NLMSG_LENGTH(sizeof(cn_msg) + sizeof(operation));
  header.nlmsg_type = NLMSG_DONE;
  cn_msg message{};
  message.id = {CN_IDX_PROC, CN_VAL_PROC};
  message.len = sizeof(operation);
  std::string bytes(header.nlmsg_len, '\0');
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + NLMSG_HDRLEN, &message, sizeof(message));
  std::memcpy(bytes.data() + NLMSG_HDRLEN + sizeof(message), &operation, sizeof(operation));
  return bytes;
}

std::string ProgramOf(pid_t pid) {
  std::error_code error;
  const auto program =
      std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", error);
  return error ? "?" : program.filename().string();
}

}  // namespace

Status ExecutionCounter::Start() {
  socket_.reset(socket(PF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = CN_IDX_PROC;
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBytes, sizeof(kReceiveBytes));
  const std::string request = ListenRequest();
  if (!socket_ ||
      bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      send(socket_.get(), request.data(), request.size(), 0) < 0) {
    return FailErrno(errno, "listen to the kernel's process connector");
  }
  stop_.reset(eventfd(0, EFD_CLOEXEC));
  thread_ = std::thread([this] { Listen(); });
  return {};
}

void ExecutionCounter::Listen() {
  std::array<pollfd, 2> polled{{{socket_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
  std::array<char, 16384> buffer;
  while (polled[1].revents == 0) {
    poll(polled.data(), polled.size(), -1);
    ssize_t got = 0;
    while ((got = recv(socket_.get(), buffer.data(), buffer.size(), 0)) > 0) {
      Take(std::string_view(buffer.data(), static_cast<size_t>(got)));
    }
    lost_ = lost_ || errno == ENOBUFS;
  }
}

void ExecutionCounter::Take(std::string_view message) {
  constexpr size_t kHeaders = NLMSG_HDRLEN + sizeof(cn_msg);
  if (message.size() < kHeaders) {
    return;
  }
  proc_event event{};
  // Inside proc_event or beside it: it has moved from one Linux to another.
  using What = decltype(event.what);
  std::memcpy(&event, message.data() + kHeaders,
              std::min(sizeof(event), message.size() - kHeaders));
  if (event.what == What::PROC_EVENT_FORK) {
    const auto& fork = event.event_data.fork;
    if (family_.contains(fork.parent_tgid)) {
      family_.insert(fork.child_tgid);
    }
  } else if (event.what == What::PROC_EVENT_EXEC) {
    const pid_t pid = event.event_data.exec.process_tgid;
    if (family_.contains(pid)) {
      names_.push_back(ProgramOf(pid));
    }
  }
}

Result<std::vector<std::string>> ExecutionCounter::Finish() {
  std::this_thread::sleep_for(kTail);
  eventfd_write(stop_.get(), 1);
  thread_.join();
  if (lost_) {
    return Fail(Code::kResourceExhausted, "listen to the kernel's process connector: events lost");
  }
  return std::move(names_);
}

ExecutionCounter::~ExecutionCounter() {
  if (thread_.joinable()) {
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }
}

std::string Named(const std::string& what, const std::vector<std::string>& names) {
  std::string text = what + ":";
  for (const std::string& name : names) {
    text += (text.ends_with(':') ? " " : ", ") + name;
  }
  return text;
}

}  // namespace gantry::bench

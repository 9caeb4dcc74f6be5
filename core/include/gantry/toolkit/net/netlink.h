// SPDX-License-Identifier: Apache-2.0
//
// rtnetlink, as far as addresses, routes and neighbours need it: dumps, changes, and the
// attributes of a message. A message here is what is behind nlmsghdr: a header of its kind,
// then attributes.
// Source: netlink(7), rtnetlink(7), Linux, net/netlink/af_netlink.c.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/toolkit/net/netns.h>
#include <gantry/unique_fd.h>

namespace gantry::net {

/// Attributes one after another. What is cut off is not there. Owner: the bytes stay another's.
class Attributes {
 public:
  explicit Attributes(std::string_view bytes) : bytes_(bytes) {}

  /// The value; empty where there is none.
  std::string_view Find(uint16_t type) const;
  /// A value of four bytes; 0 where there is none.
  uint32_t Number(uint16_t type) const;

 private:
  std::string_view bytes_;
};

template <class Header>
struct Parsed {
  Header header;
  Attributes attributes;
};

/// A message whose kind has `Header`; none where it is too short.
template <class Header>
std::optional<Parsed<Header>> Parse(std::string_view message) {
  static_assert(sizeof(Header) % 4 == 0, "attributes begin at the next multiple of four");
  Header header{};
  if (message.size() < sizeof(header)) {
    return std::nullopt;
  }
  message.copy(reinterpret_cast<char*>(&header), sizeof(header));
  return Parsed<Header>{header, Attributes(message.substr(sizeof(header)))};
}

/// The most that a dump gives.
inline constexpr size_t kMaxDumpBytes = size_t{1} << 20;

/// Thread: one at a time.
class RouteSocket {
 public:
  /// Errors: as `Netns::Sockets`.
  static Result<RouteSocket> In(const Netns& netns);
  /// In the namespace of the calling thread: for who is the first process of a machine.
  /// Errors: as socket(2).
  static Result<RouteSocket> Own();

  /// The messages that answer a request for all (RTM_GETLINK and so on) and that are `wanted`.
  /// It is asked again where something has changed meanwhile.
  /// Errors: kResourceExhausted above `kMaxDumpBytes`; kDeadlineExceeded; kAborted: it changes all
  /// the time; the kernel's errno.
  Result<std::vector<std::string>> Dump(uint16_t type,
                                        const std::function<bool(std::string_view)>& wanted,
                                        Deadline deadline);
  /// The same of a request with that message, which says what of it all.
  Result<std::vector<std::string>> DumpOf(uint16_t type, std::string_view message,
                                          const std::function<bool(std::string_view)>& wanted,
                                          Deadline deadline);
  /// Does what the message says. `flags`: NLM_F_CREATE and so on.
  /// Errors: the kernel's errno; kDeadlineExceeded.
  Status Change(uint16_t type, uint16_t flags, std::string_view message, Deadline deadline);

  const UniqueFd& fd() const { return fd_; }

 private:
  explicit RouteSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  struct Answer {
    uint16_t type = 0;
    uint16_t flags = 0;
    /// In `buffer_`.
    std::string_view message;
  };

  Status Send(uint16_t type, uint16_t flags, std::string_view message);
  /// What came next to the last that was sent; may be nothing.
  Result<std::vector<Answer>> Receive(Deadline deadline);
  Result<size_t> ReceiveDatagram(Deadline deadline);
  /// One answer to a dump, and whether it is of one moment.
  Result<bool> DumpOnce(const std::function<bool(std::string_view)>& wanted,
                        std::vector<std::string>& messages, Deadline deadline);

  UniqueFd fd_;
  uint32_t sequence_ = 0;
  std::vector<char> buffer_;
};

}  // namespace gantry::net

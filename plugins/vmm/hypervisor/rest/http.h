// SPDX-License-Identifier: Apache-2.0
//
// As much of HTTP/1.1 as Cloud Hypervisor and Firecracker speak on their UNIX sockets (both have
// the same small server): a request with a body or without, and an answer that says how long its
// body is. Whatever else HTTP has, chunks, compression, a body up to the connection's end, is an
// error that says so. The VMM runs a guest, which may have taken it over, so all is bounded.
// Source: RFC 9112; firecracker-microvm/micro-http, response.rs.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <gantry/deadline.h>
#include <gantry/error.h>

#include "plugins/vmm/hypervisor/control_socket.h"

namespace gantry::vmm {

inline constexpr size_t kMaxHttpHead = size_t{8} << 10;
/// What Cloud Hypervisor tells of a VM with all its devices is some 20 KB.
inline constexpr size_t kMaxHttpBody = size_t{1} << 20;

struct HttpRequest {
  /// "PUT"
  std::string_view method;
  /// "/api/v1/vm.boot"
  std::string_view target;
  /// JSON; empty: the request has none.
  std::string_view body = {};
  /// Go with the first byte, borrowed.
  std::span<const int> fds = {};
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

/// The text of a request.
std::string TextOf(const HttpRequest& request);

/// Puts an answer together. Thread: one.
class HttpAnswerReader {
 public:
  /// Where what is received is put.
  std::string& buffer() { return buffer_; }

  /// The answer, once all of it is there. Errors: kDataLoss: it is none that is taken.
  Result<std::optional<HttpAnswer>> Next();

 private:
  Status ReadHead(std::string_view head);
  Status ReadField(std::string_view line);

  std::string buffer_;
  /// Of the head, its empty line included; 0: not all of it is there.
  size_t head_ = 0;
  int status_ = 0;
  std::optional<size_t> length_;
};

/// Sends a request and reads its answer, over a connection that serves nothing else.
/// Errors: as `ControlSocket`; kDataLoss. Blocks: up to `deadline`.
Result<HttpAnswer> AskHttp(ControlSocket& socket, const HttpRequest& request, Deadline deadline);

}  // namespace gantry::vmm

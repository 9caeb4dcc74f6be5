// SPDX-License-Identifier: Apache-2.0
//
// Requests to a VMM with a REST API. Each has a connection of its own, so that one whose answer
// did not come in time leaves nothing that the next would read.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/host_process.h>

#include "plugins/vmm/hypervisor/json.h"
#include "plugins/vmm/hypervisor/request_lock.h"
#include "plugins/vmm/hypervisor/rest/http.h"

namespace gantry::vmm {

/// What VMMs do not have in common.
struct RestDialect {
  std::string vmm{};
  /// The words in the body of an answer that refuses; empty: it has none.
  std::function<std::string(const Json& body)> words{};
  /// What the status 400 means: one VMM has it for all that it refuses.
  Code bad_request = Code::kInvalidArgument;
};

/// Errors: those of hypervisor.h, with method, target and the VMM's words. Thread: any.
/// Blocks: up to the deadlines.
class Rest {
 public:
  /// `path`: of its socket.
  Rest(RestDialect dialect, std::string path)
      : dialect_(std::move(dialect)), path_(std::move(path)) {}

  Rest(const Rest&) = delete;
  Rest& operator=(const Rest&) = delete;
  ~Rest() = default;

  /// Waits for the VMM to listen. `process` as in `Hypervisor::Connect`.
  Status Await(Deadline deadline, const HostProcess* process);

  /// The body of the answer; null: it has none.
  Result<Json> Get(std::string_view target, Deadline deadline);
  /// A request that changes something. `body` is null where it has none. `fds` are borrowed.
  Status Put(std::string_view target, const Json& body, Deadline deadline,
             std::span<const int> fds = {});
  Status Patch(std::string_view target, const Json& body, Deadline deadline);
  Status Delete(std::string_view target, Deadline deadline);

 private:
  Result<Json> Ask(std::string_view method, std::string_view target, const Json& body,
                   std::span<const int> fds, Deadline deadline);
  Result<HttpAnswer> Exchange(const HttpRequest& request, Deadline deadline);
  Result<Json> Read(const HttpAnswer& answer) const;

  const RestDialect dialect_;
  const std::string path_;
  RequestLock lock_;
};

}  // namespace gantry::vmm

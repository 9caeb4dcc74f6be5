// SPDX-License-Identifier: Apache-2.0
//
// Calls with any number of messages, which ttrpc's servers here do not have: what a handler of one
// reads and writes, and which there are.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <gantry/error.h>

#include "core/async/co.h"

namespace gantry::door {

/// One at a time of each: the next Read or Write when the one before has returned. Thread: loop.
class Stream {
 public:
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;

  /// The client's next message; nothing: it sends no more. Errors: kCanceled: it has gone.
  virtual async::Task<Result<std::optional<std::string>>> Read() = 0;

  /// Returns when gRPC has room for the next one, so who reads slowly is waited for. Errors:
  /// kCanceled: the client has gone.
  virtual async::Task<Status> Write(std::string message) = 0;

  /// Nobody hears any more.
  virtual bool ended() const = 0;

 protected:
  Stream() = default;
};

/// Runs one; what it returns is the call's status. Thread: loop.
using StreamHandler = std::function<async::Task<Status>(std::shared_ptr<Stream>)>;

/// By "/SERVICE/METHOD". Filled before there is a server.
using StreamTable = std::map<std::string, StreamHandler, std::less<>>;

}  // namespace gantry::door

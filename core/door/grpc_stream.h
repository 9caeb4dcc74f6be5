// SPDX-License-Identifier: Apache-2.0
//
// A Stream as gRPC carries it. gRPC's threads tell the loop what they have read and written; who
// ends the call ends it once, and gRPC's own object is not touched after that.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/door/stream.h"

namespace gantry::door {

::grpc::Status GrpcStatusOf(const Status& status);

std::string BytesOf(const ::grpc::ByteBuffer& buffer);

/// Thread: loop, but for `Open`.
class GrpcStream final : public Stream, public std::enable_shared_from_this<GrpcStream> {
 public:
  struct Opened {
    std::shared_ptr<GrpcStream> stream;
    /// gRPC's.
    ::grpc::ServerGenericBidiReactor* reactor = nullptr;
  };

  /// `loop` and `context` outlive the call. Thread: gRPC's. Somebody has to `End` it.
  static Opened Open(async::Loop& loop, ::grpc::GenericCallbackServerContext& context);

  async::Task<Result<std::optional<std::string>>> Read() override;
  async::Task<Status> Write(std::string message) override;

  bool ended() const override { return reactor_ == nullptr; }

  /// The call's status. Again: nothing.
  void End(const Status& status);
  /// The same, where what is under way is not waited for.
  void Cut(const Status& status);

 private:
  class Reactor;

  explicit GrpcStream(async::Loop& loop) : loop_(loop) {}

  async::Loop& loop_;
  /// Null when it has ended.
  Reactor* reactor_ = nullptr;
  async::OneShot<bool> read_;
  async::OneShot<bool> written_;
};

}  // namespace gantry::door

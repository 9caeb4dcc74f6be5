// SPDX-License-Identifier: Apache-2.0
#include "core/door/otlp_collector.h"

#include <atomic>
#include <utility>

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "core/door/grpc_stream.h"

namespace gantry::door {
namespace {

constexpr char kExportMethod[] = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// An answer says how many spans were refused, and why.
constexpr int kMaxAnswerBytes = 64 << 10;
/// Between attempts to connect; the exporter has pauses of its own.
constexpr int kReconnectMinMs = 100;
constexpr int kReconnectMaxMs = 5000;

::grpc::ChannelArguments Arguments() {
  ::grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMinMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMinMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  return arguments;
}

}  // namespace

class OtlpCollector::Channel {
 public:
  explicit Channel(const std::string& target)
      : stub(::grpc::CreateCustomChannel(target, ::grpc::InsecureChannelCredentials(),
                                         Arguments())) {}

  ::grpc::GenericStub stub;
};

/// gRPC's threads use it until `over`.
struct OtlpCollector::Call {
  ::grpc::ClientContext context;
  ::grpc::ByteBuffer request;
  ::grpc::ByteBuffer answer;
  async::OneShot<Result<std::string>> done;
  std::atomic<bool> over = false;

  Result<std::string> ResultOf(const ::grpc::Status& status) const {
    if (!status.ok()) {
      return Fail(static_cast<Code>(status.error_code()), "{}", status.error_message());
    }
    return BytesOf(answer);
  }
};

OtlpCollector::OtlpCollector(async::Loop& loop, const std::string& target,
                             std::chrono::milliseconds limit)
    : loop_(loop), limit_(limit), channel_(std::make_unique<Channel>(target)) {}

OtlpCollector::~OtlpCollector() {
  if (call_ && !call_->over) {
    call_->context.TryCancel();
    call_->over.wait(false);
  }
}

async::Task<Result<std::string>> OtlpCollector::Export(std::string request) {
  const auto call = std::make_shared<Call>();
  call_ = call;
  call->context.set_deadline(std::chrono::system_clock::now() + limit_);
  const ::grpc::Slice slice(request);
  call->request = ::grpc::ByteBuffer(&slice, 1);
  channel_->stub.UnaryCall(&call->context, kExportMethod, {}, &call->request, &call->answer,
                           [&loop = loop_, call](const ::grpc::Status& status) {
                             loop.Post([call, result = call->ResultOf(status)]() mutable {
                               call->done.Set(std::move(result));
                             });
                             call->over = true;
                             call->over.notify_all();
                           });
  co_return std::move(co_await call->done.Wait());
}

}  // namespace gantry::door

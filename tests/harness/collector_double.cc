// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/collector_double.h"

#include <chrono>
#include <mutex>
#include <utility>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

namespace gantry::test {
namespace {

std::string BytesOf(const ::grpc::ByteBuffer& buffer) {
  std::vector<::grpc::Slice> slices;
  std::string bytes;
  if (buffer.Dump(&slices).ok()) {
    for (const ::grpc::Slice& slice : slices) {
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
  }
  return bytes;
}

struct State {
  mutable std::mutex mutex;
  ::grpc::Status status;
  ExportResponse response;
  bool holds = false;
  std::vector<std::string> methods;
  std::vector<ExportRequest> requests;
  std::vector<OtlpSpan> spans;
};

/// One call. gRPC deletes it: OnDone.
class Exchange final : public ::grpc::ServerGenericBidiReactor {
 public:
  Exchange(State& state, std::string method) : state_(state), method_(std::move(method)) {
    StartRead(&bytes_);
  }

  void OnReadDone(bool ok) override {
    const std::scoped_lock lock(state_.mutex);
    ExportRequest request;
    if (!ok || !request.ParseFromString(BytesOf(bytes_))) {
      Finish({::grpc::StatusCode::INVALID_ARGUMENT, "no request of OTLP's"});
      return;
    }
    state_.methods.push_back(method_);
    state_.requests.push_back(request);
    if (state_.holds) {
      return;
    }
    if (!state_.status.ok()) {
      Finish(state_.status);
      return;
    }
    for (const auto& resource : request.resource_spans()) {
      for (const auto& scope : resource.scope_spans()) {
        state_.spans.insert(state_.spans.end(), scope.spans().begin(), scope.spans().end());
      }
    }
    const ::grpc::Slice slice(state_.response.SerializeAsString());
    bytes_ = ::grpc::ByteBuffer(&slice, 1);
    StartWriteAndFinish(&bytes_, {}, ::grpc::Status::OK);
  }

  void OnCancel() override {
    const std::scoped_lock lock(state_.mutex);
    if (state_.holds) {
      Finish(::grpc::Status::CANCELLED);
    }
  }

  void OnDone() override { delete this; }

 private:
  State& state_;
  const std::string method_;
  ::grpc::ByteBuffer bytes_;
};

}  // namespace

class CollectorDouble::Service final : public ::grpc::CallbackGenericService {
 public:
  ::grpc::ServerGenericBidiReactor* CreateReactor(
      ::grpc::GenericCallbackServerContext* context) override {
    return new Exchange(state, context->method());  // NOLINT(cppcoreguidelines-owning-memory)
  }

  State state;
  std::unique_ptr<::grpc::Server> server;
};

CollectorDouble::CollectorDouble() : service_(std::make_unique<Service>()) {}

CollectorDouble::~CollectorDouble() { GoAway(); }

bool CollectorDouble::Listen(const std::string& path) {
  ::grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path, ::grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(service_.get());
  service_->server = builder.BuildAndStart();
  return service_->server != nullptr;
}

void CollectorDouble::GoAway() {
  if (service_->server) {
    service_->server->Shutdown(std::chrono::system_clock::now());
    service_->server.reset();
  }
}

void CollectorDouble::Answer(int code, const std::string& message, const ExportResponse& response) {
  const std::scoped_lock lock(service_->state.mutex);
  service_->state.status = {static_cast<::grpc::StatusCode>(code), message};
  service_->state.response = response;
}

void CollectorDouble::HoldAnswers() {
  const std::scoped_lock lock(service_->state.mutex);
  service_->state.holds = true;
}

std::vector<std::string> CollectorDouble::methods() const {
  const std::scoped_lock lock(service_->state.mutex);
  return service_->state.methods;
}

std::vector<ExportRequest> CollectorDouble::requests() const {
  const std::scoped_lock lock(service_->state.mutex);
  return service_->state.requests;
}

std::vector<OtlpSpan> CollectorDouble::spans() const {
  const std::scoped_lock lock(service_->state.mutex);
  return service_->state.spans;
}

std::string TextOf(const OtlpSpan& span, const std::string& key) {
  for (const auto& attribute : span.attributes()) {
    if (attribute.key() == key) {
      return attribute.value().string_value();
    }
  }
  return {};
}

}  // namespace gantry::test

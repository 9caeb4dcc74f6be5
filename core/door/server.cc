// SPDX-License-Identifier: Apache-2.0
//
// A call is an `Exchange`, which gRPC owns from its beginning to OnDone. The loop knows it by a
// number in `open_` from when its request has been read until it is finished, and nobody finishes
// it but who takes it out of there, so that it is finished once, and not touched after that.
// To the dispatcher each call is a connection of its own, whose closing is the call's end.
#include "core/door/server.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_posix.h>

#include "core/log/log.h"
#include "core/rpc/dispatcher.h"
#include "core/rpc/ttrpc.h"

namespace gantry::door {
namespace {

constexpr uint32_t kOnlyStream = 1;
/// Under which gRPC's clients of containerd send the namespace.
/// Source: containerd 2.3.4, pkg/namespaces/grpc.go.
constexpr std::string_view kGrpcNamespaceKey = "containerd-namespace";
/// What gRPC is given to take its threads down when the program ends.
constexpr std::chrono::seconds kShutdownLimit(1);

std::string_view View(const ::grpc::string_ref& text) { return {text.data(), text.size()}; }

/// "/package.Service/Method". Errors: kInvalidArgument.
Status SplitMethod(std::string_view path, rpc::Request& request) {
  const size_t slash = path.rfind('/');
  if (!path.starts_with('/') || slash == 0 || slash + 1 == path.size()) {
    return Fail(Code::kInvalidArgument, "call '{}': not '/SERVICE/METHOD'", path.substr(0, 200));
  }
  request.service = path.substr(1, slash - 1);
  request.method = path.substr(slash + 1);
  return {};
}

/// gRPC's metadata as ttrpc has it. What belongs to the transport is left out.
rpc::Metadata MetadataOf(const std::multimap<::grpc::string_ref, ::grpc::string_ref>& all) {
  rpc::Metadata metadata;
  for (const auto& [key, value] : all) {
    const std::string_view name = View(key);
    if (name == kGrpcNamespaceKey) {
      metadata.emplace_back(rpc::kNamespaceKey, View(value));
    } else if (!name.starts_with("grpc-") && !name.ends_with("-bin") && name != "user-agent") {
      metadata.emplace_back(name, View(value));
    }
  }
  return metadata;
}

/// 0: none; negative: it has passed.
std::chrono::nanoseconds TimeLeft(std::chrono::system_clock::time_point deadline) {
  if (deadline == std::chrono::system_clock::time_point::max()) {
    return std::chrono::nanoseconds(0);
  }
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
      deadline - std::chrono::system_clock::now());
  return left.count() == 0 ? std::chrono::nanoseconds(-1) : left;
}

std::string BytesOf(const ::grpc::ByteBuffer& buffer) {
  std::vector<::grpc::Slice> slices;
  std::string bytes;
  if (buffer.Dump(&slices).ok()) {
    bytes.reserve(buffer.Length());
    for (const ::grpc::Slice& slice : slices) {
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
  }
  return bytes;
}

/// One call. Threads: gRPC's for what is overridden, the loop's for the rest.
class Exchange final : public ::grpc::ServerGenericBidiReactor {
 public:
  using OnRead = std::function<void(Exchange&, bool)>;
  using OnCancelled = std::function<void(uint64_t)>;

  Exchange(uint64_t number, const ::grpc::GenericCallbackServerContext& context, OnRead on_read,
           OnCancelled on_cancelled)
      : number_(number),
        context_(context),
        on_read_(std::move(on_read)),
        on_cancelled_(std::move(on_cancelled)) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override { on_read_(*this, ok); }

  void OnCancel() override {
    cancelled_ = true;
    on_cancelled_(number_);
  }

  void OnDone() override { delete this; }

  uint64_t number() const { return number_; }

  bool cancelled() const { return cancelled_; }

  /// The request as ttrpc has it.
  Result<rpc::Request> TakeRequest() {
    rpc::Request request;
    GANTRY_CHECK_OK(SplitMethod(context_.method(), request));
    request.metadata = MetadataOf(context_.client_metadata());
    request.timeout = TimeLeft(context_.deadline());
    request.payload = BytesOf(request_);
    request_.Clear();
    return request;
  }

  /// Once. It may be gone afterwards.
  void Answer(const Result<std::string>& result) {
    if (!result) {
      Finish({static_cast<::grpc::StatusCode>(result.error().code),
              rpc::CleanText(result.error().message)});
      return;
    }
    const ::grpc::Slice slice(*result);
    response_ = ::grpc::ByteBuffer(&slice, 1);
    StartWriteAndFinish(&response_, {}, ::grpc::Status::OK);
  }

 private:
  const uint64_t number_;
  const ::grpc::GenericCallbackServerContext& context_;
  const OnRead on_read_;
  const OnCancelled on_cancelled_;
  std::atomic<bool> cancelled_ = false;
  ::grpc::ByteBuffer request_;
  ::grpc::ByteBuffer response_;
};

}  // namespace

class Server::Core final : public ::grpc::CallbackGenericService {
 public:
  Core(async::Loop& loop, const rpc::MethodTable& table, const ServerLimits& limits)
      : loop_(loop),
        alive_(std::make_shared<Core*>(this)),
        dispatcher_(loop, table,
                    [this](uint64_t call, uint32_t, const std::string& response) {
                      Answer(call, rpc::DecodeResponse(response));
                    },
                    {.per_connection = 1, .total = limits.calls}) {}

  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  ~Core() override {
    *alive_ = nullptr;
    // While gRPC still has them.
    for (const auto& [number, exchange] : std::exchange(open_, {})) {
      exchange->Answer(Fail(Code::kUnavailable, "gantry's gRPC server ends: call again"));
    }
    if (server_) {
      server_->Shutdown(std::chrono::system_clock::now() + kShutdownLimit);
    }
  }

  Status Start(const ServerLimits& limits) {
    ::grpc::EnableDefaultHealthCheckService(true);
    ::grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(this);
    builder.SetMaxReceiveMessageSize(static_cast<int>(rpc::kMaxFrameBytes));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits.calls_per_connection);
    server_ = builder.BuildAndStart();
    return server_ ? Status() : Fail(Code::kInternal, "start the gRPC server: gRPC gives none");
  }

  /// Thread: gRPC's.
  ::grpc::ServerGenericBidiReactor* CreateReactor(
      ::grpc::GenericCallbackServerContext* context) override {
    // gRPC deletes it: OnDone.
    return new Exchange(  // NOLINT(cppcoreguidelines-owning-memory)
        next_.fetch_add(1), *context,
        [this](Exchange& exchange, bool ok) {
          loop_.Post([alive = alive_, &exchange, ok] {
            if (*alive != nullptr) {
              (*alive)->Begin(exchange, ok);
            } else {
              exchange.Answer(Fail(Code::kUnavailable, "gantry's gRPC server ends: call again"));
            }
          });
        },
        [this](uint64_t number) {
          loop_.Post([alive = alive_, number] {
            if (*alive != nullptr) {
              (*alive)->Cancelled(number);
            }
          });
        });
  }

  void Take(UniqueFd connection) {
    ::grpc::AddInsecureChannelFromFd(server_.get(), connection.release());
  }

  bool IsBusy() const { return dispatcher_.IsBusy(); }

 private:
  void Begin(Exchange& exchange, bool ok) {
    if (!ok || exchange.cancelled()) {
      exchange.Answer(Fail(Code::kInvalidArgument, "read the request: there is none"));
      return;
    }
    Result<rpc::Request> request = exchange.TakeRequest();
    if (!request) {
      exchange.Answer(std::unexpected(std::move(request).error()));
      return;
    }
    open_[exchange.number()] = &exchange;
    dispatcher_.Dispatch({.connection = exchange.number(),
                          .stream = kOnlyStream,
                          .bytes = rpc::EncodeRequest(*request),
                          .ns = {},
                          .address = {}});
  }

  void Answer(uint64_t number, const Result<std::string>& result) {
    if (const auto entry = open_.extract(number)) {
      entry.mapped()->Answer(result);
    }
  }

  void Cancelled(uint64_t number) {
    Answer(number, Fail(Code::kCanceled, "the call was cancelled"));
    dispatcher_.ConnectionClosed(number);
  }

  async::Loop& loop_;
  std::atomic<uint64_t> next_ = 1;
  /// Null when this has gone: what gRPC's threads have posted may come later.
  const std::shared_ptr<Core*> alive_;
  std::unordered_map<uint64_t, Exchange*> open_;
  rpc::Dispatcher dispatcher_;
  std::unique_ptr<::grpc::Server> server_;
};

Result<std::unique_ptr<Server>> Server::Start(async::Loop& loop, const rpc::MethodTable& table,
                                              const ServerLimits& limits) {
  auto core = std::make_unique<Core>(loop, table, limits);
  GANTRY_CHECK_OK(core->Start(limits));
  return std::unique_ptr<Server>(new Server(std::move(core)));
}

Server::Server(std::unique_ptr<Core> core) : core_(std::move(core)) {}

Server::~Server() = default;

void Server::Take(UniqueFd connection) { core_->Take(std::move(connection)); }

bool Server::IsBusy() const { return core_->IsBusy(); }

}  // namespace gantry::door

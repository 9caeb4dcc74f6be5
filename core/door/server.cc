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
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_posix.h>

#include "core/async/idle_trim.h"
#include "core/door/grpc_stream.h"
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
      Finish(GrpcStatusOf(std::unexpected(result.error())));
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
  Core(async::Loop& loop, const rpc::MethodTable& table, const StreamTable& streams,
       const ServerLimits& limits)
      : loop_(loop),
        table_(table),
        handlers_(streams),
        limits_(limits),
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
    for (const auto& [number, stream] : std::exchange(streams_, {})) {
      stream->Cut(Fail(Code::kUnavailable, "gantry's gRPC server ends: call again"));
    }
    if (server_) {
      server_->Shutdown(std::chrono::system_clock::now() + kShutdownLimit);
    }
  }

  Status Start() {
    ::grpc::EnableDefaultHealthCheckService(true);
    ::grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(this);
    builder.SetMaxReceiveMessageSize(static_cast<int>(rpc::kMaxFrameBytes));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits_.calls_per_connection);
    server_ = builder.BuildAndStart();
    if (!server_) {
      return Fail(Code::kInternal, "start the gRPC server: gRPC gives none");
    }
    for (const std::string& service : ServicesOf(table_, handlers_)) {
      server_->GetHealthCheckService()->SetServingStatus(service, true);
    }
    trim_.Touch();
    return {};
  }

  /// Thread: gRPC's.
  ::grpc::ServerGenericBidiReactor* CreateReactor(
      ::grpc::GenericCallbackServerContext* context) override {
    if (const auto handler = handlers_.find(context->method()); handler != handlers_.end()) {
      GrpcStream::Opened opened = GrpcStream::Open(loop_, *context);
      loop_.Post([alive = alive_, handler = &handler->second, stream = std::move(opened.stream)] {
        if (*alive != nullptr) {
          (*alive)->BeginStream(*handler, stream);
        } else {
          stream->End(Fail(Code::kUnavailable, "gantry's gRPC server ends: call again"));
        }
      });
      return opened.reactor;
    }
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
    trim_.Touch();
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

  void BeginStream(const StreamHandler& handler, const std::shared_ptr<GrpcStream>& stream) {
    trim_.Touch();
    if (streams_.size() >= limits_.streams) {
      stream->End(Fail(Code::kResourceExhausted, "more than {} streams are open", limits_.streams));
      return;
    }
    const uint64_t number = next_.fetch_add(1);
    streams_[number] = stream;
    async::Start(RunStream(handler(stream), stream), [alive = alive_, number] {
      if (*alive != nullptr) {
        (*alive)->streams_.erase(number);
      }
    });
  }

  static async::Task<void> RunStream(async::Task<Status> handler,
                                     std::shared_ptr<GrpcStream> stream) {
    stream->End(co_await std::move(handler));
  }

  void Answer(uint64_t number, const Result<std::string>& result) {
    trim_.Touch();
    if (const auto entry = open_.extract(number)) {
      entry.mapped()->Answer(result);
    }
  }

  void Cancelled(uint64_t number) {
    Answer(number, Fail(Code::kCanceled, "the call was cancelled"));
    dispatcher_.ConnectionClosed(number);
  }

  async::Loop& loop_;
  /// gRPC's code is what this program has most of.
  async::IdleTrim trim_{loop_};
  const rpc::MethodTable& table_;
  const StreamTable& handlers_;
  const ServerLimits limits_;
  std::atomic<uint64_t> next_ = 1;
  /// Null when this has gone: what gRPC's threads have posted may come later.
  const std::shared_ptr<Core*> alive_;
  std::unordered_map<uint64_t, Exchange*> open_;
  /// Whose handlers have not returned.
  std::unordered_map<uint64_t, std::shared_ptr<GrpcStream>> streams_;
  rpc::Dispatcher dispatcher_;
  std::unique_ptr<::grpc::Server> server_;
};

std::vector<std::string> ServicesOf(const rpc::MethodTable& table, const StreamTable& streams) {
  std::set<std::string> services;
  for (const std::string& name : table.Names()) {
    services.insert(name.substr(0, name.rfind('/')));
  }
  for (const auto& [name, handler] : streams) {
    services.insert(name.substr(1, name.rfind('/') - 1));
  }
  return {services.begin(), services.end()};
}

Result<std::unique_ptr<Server>> Server::Start(async::Loop& loop, const rpc::MethodTable& table,
                                              const StreamTable& streams,
                                              const ServerLimits& limits) {
  auto core = std::make_unique<Core>(loop, table, streams, limits);
  GANTRY_CHECK_OK(core->Start());
  return std::unique_ptr<Server>(new Server(std::move(core)));
}

Server::Server(std::unique_ptr<Core> core) : core_(std::move(core)) {}

Server::~Server() = default;

void Server::Take(UniqueFd connection) { core_->Take(std::move(connection)); }

bool Server::IsBusy() const { return core_->IsBusy(); }

}  // namespace gantry::door

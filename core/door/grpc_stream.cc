// SPDX-License-Identifier: Apache-2.0
#include "core/door/grpc_stream.h"

#include <utility>
#include <vector>

#include "core/rpc/ttrpc.h"

namespace gantry::door {
namespace {

std::unexpected<Error> Gone() { return Fail(Code::kCanceled, "the client has gone"); }

}  // namespace

::grpc::Status GrpcStatusOf(const Status& status) {
  return status ? ::grpc::Status::OK
                : ::grpc::Status(static_cast<::grpc::StatusCode>(status.error().code),
                                 rpc::CleanText(status.error().message));
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

/// gRPC deletes it: OnDone. Threads: gRPC's for what is overridden, the loop's for the rest.
class GrpcStream::Reactor final : public ::grpc::ServerGenericBidiReactor {
 public:
  Reactor(std::shared_ptr<GrpcStream> stream, ::grpc::GenericCallbackServerContext& context)
      : stream_(std::move(stream)), context_(context) {}

  void OnReadDone(bool ok) override {
    stream_->loop_.Post([stream = stream_, ok] { stream->read_.Set(ok); });
  }

  void OnWriteDone(bool ok) override {
    stream_->loop_.Post([stream = stream_, ok] { stream->written_.Set(ok); });
  }

  void OnCancel() override {
    stream_->loop_.Post([stream = stream_] { stream->End(Gone()); });
  }

  void OnDone() override { delete this; }

  void Read() { StartRead(&in_); }

  std::string TakeRead() {
    std::string bytes = BytesOf(in_);
    in_.Clear();
    return bytes;
  }

  void Write(const std::string& message) {
    const ::grpc::Slice slice(message);
    out_ = ::grpc::ByteBuffer(&slice, 1);
    StartWrite(&out_);
  }

  void Cancel() { context_.TryCancel(); }

 private:
  const std::shared_ptr<GrpcStream> stream_;
  ::grpc::GenericCallbackServerContext& context_;
  ::grpc::ByteBuffer in_;
  ::grpc::ByteBuffer out_;
};

GrpcStream::Opened GrpcStream::Open(async::Loop& loop,
                                    ::grpc::GenericCallbackServerContext& context) {
  std::shared_ptr<GrpcStream> stream(new GrpcStream(loop));
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): gRPC deletes it.
  stream->reactor_ = new Reactor(stream, context);
  ::grpc::ServerGenericBidiReactor* const reactor = stream->reactor_;
  return {std::move(stream), reactor};
}

async::Task<Result<std::optional<std::string>>> GrpcStream::Read() {
  if (ended()) {
    co_return Gone();
  }
  const auto self = shared_from_this();
  read_ = {};
  reactor_->Read();
  const async::OneShot<bool> read = read_;
  const bool ok = co_await read.Wait();
  if (ended()) {
    co_return Gone();
  }
  if (!ok) {
    co_return std::nullopt;
  }
  co_return reactor_->TakeRead();
}

async::Task<Status> GrpcStream::Write(std::string message) {
  if (ended()) {
    co_return Gone();
  }
  const auto self = shared_from_this();
  written_ = {};
  reactor_->Write(message);
  const async::OneShot<bool> written = written_;
  const bool ok = co_await written.Wait();
  if (!ok || ended()) {
    co_return Gone();
  }
  co_return Status();
}

void GrpcStream::End(const Status& status) {
  if (Reactor* const reactor = std::exchange(reactor_, nullptr)) {
    reactor->Finish(GrpcStatusOf(status));
  }
}

void GrpcStream::Cut(const Status& status) {
  if (!ended()) {
    reactor_->Cancel();
  }
  End(status);
}

}  // namespace gantry::door

// SPDX-License-Identifier: Apache-2.0
#include "core/door/dial.h"

#include <sys/epoll.h>

#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/door/grpc_stream.h"
#include "core/os/poll.h"
#include "core/os/splice.h"
#include "core/rpc/ttrpc.h"

namespace gantry::door {
namespace {

Result<std::string> Call(::grpc::GenericStub& stub, const rpc::Request& request) {
  ::grpc::ClientContext context;
  if (request.timeout.count() != 0) {
    context.set_deadline(
        std::chrono::system_clock::now() +
        std::chrono::duration_cast<std::chrono::system_clock::duration>(request.timeout));
  }
  for (const auto& [key, value] : request.metadata) {
    context.AddMetadata(key, value);
  }
  const ::grpc::Slice slice(request.payload);
  const ::grpc::ByteBuffer payload(&slice, 1);
  ::grpc::ByteBuffer answer;
  std::promise<::grpc::Status> done;
  stub.UnaryCall(&context, Format("/{}/{}", request.service, request.method), {}, &payload, &answer,
                 [&done](::grpc::Status status) { done.set_value(std::move(status)); });
  const ::grpc::Status status = done.get_future().get();
  if (!status.ok()) {
    return Fail(static_cast<Code>(status.error_code()), "{}", status.error_message());
  }
  return BytesOf(answer);
}

Status Send(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    GANTRY_TRY(const Transfer put, SendWithFds(socket, bytes, {}));
    bytes.remove_prefix(put.bytes);
    if (put.would_block) {
      GANTRY_TRY([[maybe_unused]] const uint32_t ready,
                 os::Poll(socket, EPOLLOUT, std::chrono::hours(1)));
    }
  }
  return {};
}

Status Answer(int socket, ::grpc::GenericStub& stub, const rpc::Frame& frame) {
  Result<rpc::Request> request = rpc::DecodeRequest(frame.data);
  const Result<std::string> answer =
      request ? Call(stub, *request) : Result<std::string>(std::unexpected(request.error()));
  GANTRY_TRY(const std::string bytes,
             rpc::EncodeFrame(frame.header.stream, rpc::FrameType::kResponse, 0,
                              rpc::EncodeResponse(answer)));
  return Send(socket, bytes);
}

}  // namespace

Status Dial(UniqueFd socket, const std::string& path) {
  ::grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(rpc::kMaxFrameBytes));
  ::grpc::GenericStub stub(
      ::grpc::CreateCustomChannel("unix:" + path, ::grpc::InsecureChannelCredentials(), arguments));
  rpc::FrameSplitter frames;
  for (;;) {
    while (const std::optional<rpc::Frame> frame = frames.Next()) {
      GANTRY_CHECK_OK(Answer(socket.get(), stub, *frame));
    }
    GANTRY_TRY([[maybe_unused]] const uint32_t ready,
               os::Poll(socket.get(), EPOLLIN, std::chrono::hours(1)));
    std::array<char, size_t{16} << 10> buffer{};
    GANTRY_TRY(const Transfer got, os::ReadSome(socket.get(), buffer));
    if (got.end) {
      return {};
    }
    frames.Feed(std::string_view(buffer.data(), got.bytes));
  }
}

}  // namespace gantry::door

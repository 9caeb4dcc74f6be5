// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/streaming_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string_view>

#include <gantry/protowire.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

namespace gantry::bench {
namespace {

constexpr uint32_t kStream = 1;
constexpr size_t kReadBytes = 32768;
constexpr int64_t kWindow = 65536;
constexpr int kSilenceMs = 20000;

std::string Any(std::string_view type, const std::string& value) {
  ProtoWriter any;
  any.Text(1, type);
  any.Bytes(2, value);
  return any.Take();
}

/// The bytes of a field of that number.
std::string_view FieldOf(std::string_view message, uint32_t field) {
  ProtoReader in(message);
  std::string_view found;
  while (in.Next()) {
    if (in.field() == field) {
      found = in.bytes();
    }
  }
  return found;
}

}  // namespace

Result<StreamingClient> StreamingClient::Open(const std::string& socket, const std::string& id) {
  GANTRY_TRY(UniqueFd connected, ConnectUnix(socket));
  GANTRY_CHECK_OK(SetNonblocking(connected.get(), false));
  StreamingClient client(std::move(connected));
  rpc::Request request;
  request.service = "containerd.services.streaming.v1.Streaming";
  request.method = "Stream";
  GANTRY_CHECK_OK(client.Send(rpc::FrameType::kRequest, rpc::kRemoteOpen, EncodeRequest(request)));
  ProtoWriter init;
  init.Text(1, id);
  GANTRY_CHECK_OK(client.Send(rpc::FrameType::kData, 0,
                              Any("containerd.services.streaming.v1.StreamInit", init.str())));
  GANTRY_TRY(const rpc::Frame answer, client.Receive());
  if (answer.header.type != static_cast<uint8_t>(rpc::FrameType::kData)) {
    GANTRY_CHECK_OK(rpc::DecodeResponse(answer.data));
  }
  GANTRY_CHECK_OK(client.KeepOpen());
  return client;
}

Status StreamingClient::Send(rpc::FrameType type, uint8_t flags, const std::string& data) {
  GANTRY_TRY(const std::string frame, rpc::EncodeFrame(kStream, type, flags, data));
  if (send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(frame.size())) {
    return Fail(Code::kUnavailable, "write to a stream: it does not take it");
  }
  return {};
}

Result<rpc::Frame> StreamingClient::Receive() {
  for (;;) {
    if (std::optional<rpc::Frame> frame = in_.Next()) {
      return std::move(*frame);
    }
    pollfd polled{socket_.get(), POLLIN, 0};
    if (poll(&polled, 1, kSilenceMs) != 1) {
      return Fail(Code::kDeadlineExceeded, "read a stream: nothing comes");
    }
    std::array<char, kReadBytes> buffer{};
    const ssize_t got = read(socket_.get(), buffer.data(), buffer.size());
    if (got <= 0) {
      return Fail(Code::kUnavailable, "read a stream: its connection has ended");
    }
    in_.Feed({buffer.data(), static_cast<size_t>(got)});
  }
}

Status StreamingClient::KeepOpen() {
  if (window_ >= kWindow) {
    return {};
  }
  ProtoWriter window;
  window.Varint(1, kWindow);
  window_ += kWindow;
  return Send(rpc::FrameType::kData, 0,
              Any("containerd.types.transfer.WindowUpdate", window.str()));
}

Result<std::string> StreamingClient::Read() {
  GANTRY_TRY(const rpc::Frame frame, Receive());
  if ((frame.header.flags & rpc::kRemoteClosed) != 0) {
    GANTRY_CHECK_OK(Send(rpc::FrameType::kData, rpc::kRemoteClosed | rpc::kNoData, ""));
    return std::string();
  }
  std::string data(FieldOf(FieldOf(frame.data, 2), 1));
  if (data.empty()) {
    return Fail(Code::kInternal, "read a stream: no data in {} bytes", frame.data.size());
  }
  window_ -= static_cast<int64_t>(data.size());
  GANTRY_CHECK_OK(KeepOpen());
  return data;
}

}  // namespace gantry::bench

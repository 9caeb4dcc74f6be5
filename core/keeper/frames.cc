// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/frames.h"

#include <algorithm>
#include <utility>

#include <gantry/protowire.h>

namespace gantry::keeper {
namespace {

uint32_t BigEndian(const char* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    value = (value << 8) | static_cast<uint8_t>(bytes[i]);
  }
  return value;
}

void AppendBigEndian(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>((value >> shift) & 0xff));
  }
}

}  // namespace

bool FrameSplitter::TakeHeader(std::string_view& bytes) {
  const size_t count = std::min(bytes.size(), kFrameHeaderBytes - header_got_);
  std::copy_n(bytes.begin(), count, header_.begin() + static_cast<ptrdiff_t>(header_got_));
  header_got_ += count;
  bytes.remove_prefix(count);
  if (header_got_ < kFrameHeaderBytes) {
    return false;
  }
  frame_ = Frame{BigEndian(header_.data()),
                 BigEndian(header_.data() + 4),
                 static_cast<uint8_t>(header_[8]),
                 static_cast<uint8_t>(header_[9]),
                 {},
                 false};
  frame_.skipped = frame_.length > kMaxPayload;
  payload_got_ = 0;
  return true;
}

void FrameSplitter::Feed(std::string_view bytes, const OnFrame& on_frame) {
  while (true) {
    if (header_got_ < kFrameHeaderBytes && !TakeHeader(bytes)) {
      return;
    }
    const size_t count = std::min<size_t>(bytes.size(), frame_.length - payload_got_);
    if (!frame_.skipped) {
      frame_.payload.append(bytes.substr(0, count));
    }
    payload_got_ += count;
    bytes.remove_prefix(count);
    if (payload_got_ < frame_.length) {
      return;
    }
    header_got_ = 0;
    on_frame(std::exchange(frame_, {}));
  }
}

state::Partial FrameSplitter::Save() const {
  return {std::string(header_.data(), header_got_), frame_.payload, payload_got_, frame_.skipped};
}

void FrameSplitter::Restore(const state::Partial& partial) {
  std::string_view header = partial.header;
  if (!TakeHeader(header)) {
    return;
  }
  frame_.payload = partial.payload;
  frame_.skipped = partial.skipped;
  payload_got_ = partial.payload_got;
}

void FrameSplitter::SkipCurrent() {
  std::string().swap(frame_.payload);
  frame_.skipped = true;
}

std::string ResponseFrame(uint32_t stream, std::string_view response) {
  std::string out;
  out.reserve(kFrameHeaderBytes + response.size());
  AppendBigEndian(out, static_cast<uint32_t>(response.size()));
  AppendBigEndian(out, stream);
  out.push_back(static_cast<char>(kFrameResponse));
  out.push_back('\0');
  out.append(response);
  return out;
}

std::string StreamOpenFrame(uint32_t stream) {
  ProtoWriter any;
  any.Text(1, "google.protobuf.Empty");
  std::string out;
  AppendBigEndian(out, static_cast<uint32_t>(any.str().size()));
  AppendBigEndian(out, stream);
  out.push_back(static_cast<char>(kFrameData));
  out.push_back('\0');
  out.append(any.str());
  return out;
}

bool OpensStream(std::string_view request) {
  ProtoReader in(request);
  std::string_view service;
  while (in.Next()) {
    if (in.field() == 1 && in.is_bytes()) {
      service = in.bytes();
    }
  }
  return in.ok() && service == "containerd.services.streaming.v1.Streaming" &&
         RequestMethod(request) == "Stream";
}

Result<std::string> StreamIdOf(std::string_view message) {
  constexpr size_t kMaxId = 512;
  std::string_view type;
  std::string_view value;
  ProtoReader any(message);
  while (any.Next()) {
    if (any.field() == 1 && any.is_bytes()) {
      type = any.bytes();
    } else if (any.field() == 2 && any.is_bytes()) {
      value = any.bytes();
    }
  }
  if (!any.ok() ||
      type.substr(type.rfind('/') + 1) != "containerd.services.streaming.v1.StreamInit") {
    return Fail(Code::kInvalidArgument, "open a stream: its first message is no StreamInit");
  }
  std::string id;
  ProtoReader init(value);
  while (init.Next()) {
    if (init.field() == 1 && init.is_bytes()) {
      id = init.text();
    }
  }
  if (!init.ok() || id.empty() || id.size() > kMaxId) {
    return Fail(Code::kInvalidArgument, "open a stream: its id has {} bytes", id.size());
  }
  return id;
}

std::string ErrorResponse(Code code, std::string_view message) {
  ProtoWriter status;
  status.Int(1, static_cast<int>(code));
  status.Text(2, message);
  ProtoWriter response;
  response.Bytes(1, status.str());
  return response.Take();
}

std::string RequestMethod(std::string_view request) {
  ProtoReader in(request);
  std::string method;
  while (in.Next()) {
    if (in.field() == 2 && in.is_bytes()) {
      method = in.text();
    }
  }
  return in.ok() ? method : std::string();
}

std::chrono::nanoseconds RequestTimeout(std::string_view request) {
  ProtoReader in(request);
  int64_t timeout = 0;
  while (in.Next()) {
    if (in.field() == 4 && !in.is_bytes()) {
      timeout = in.integer();
    }
  }
  return std::chrono::nanoseconds(in.ok() ? std::max<int64_t>(timeout, 0) : 0);
}

}  // namespace gantry::keeper

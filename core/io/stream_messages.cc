// SPDX-License-Identifier: Apache-2.0
//
// Data is read as containerd writes it, its type before its bytes: so these can be passed on as
// they are, without a copy in memory. Everything else is short, and read as any message.
#include "core/io/stream_messages.h"

#include <optional>

#include <gantry/protowire.h>

namespace gantry::io {
namespace {

using Kind = StreamHead::Kind;

constexpr std::string_view kDataType = "containerd.types.transfer.Data";
constexpr std::string_view kWindowType = "containerd.types.transfer.WindowUpdate";

constexpr size_t kFrameHeaderBytes = 10;
constexpr size_t kMaxFrameBytes = size_t{4} << 20;
constexpr uint8_t kFrameData = 3;
constexpr uint8_t kRemoteClosed = 0x01;
constexpr uint8_t kNoData = 0x04;
/// Both kinds of field that there are: 1 and 2, of bytes.
constexpr char kFirstBytes = 0x0a;
constexpr char kSecondBytes = 0x12;
/// A hostile client's; no window is ever that large.
constexpr uint64_t kMaxUpdate = uint64_t{1} << 30;

void AppendBigEndian(std::string& out, uint64_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>((value >> shift) & 0xff));
  }
}

uint32_t BigEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (const char byte : bytes.substr(0, 4)) {
    value = (value << 8) | static_cast<uint8_t>(byte);
  }
  return value;
}

std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) {
    out.push_back(static_cast<char>(value | 0x80));
  }
  out.push_back(static_cast<char>(value));
  return out;
}

std::string FrameHeader(uint32_t stream, size_t length, uint8_t flags) {
  std::string out;
  AppendBigEndian(out, length);
  AppendBigEndian(out, stream);
  out.push_back(static_cast<char>(kFrameData));
  out.push_back(static_cast<char>(flags));
  return out;
}

/// Takes bytes off the front.
class Cursor {
 public:
  explicit Cursor(std::string_view rest) : rest_(rest) {}

  bool TakeText(std::string_view text) {
    if (!rest_.starts_with(text)) {
      return false;
    }
    rest_.remove_prefix(text.size());
    return true;
  }

  std::optional<uint64_t> TakeVarint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 35 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80) == 0) {
        return value;
      }
    }
    return std::nullopt;
  }

  size_t left() const { return rest_.size(); }

 private:
  std::string_view rest_;
};

/// An Any with a Data in it, of which the first bytes are here. None: it is something else.
std::optional<StreamHead> ReadData(std::string_view frame, size_t length) {
  Cursor in(frame);
  const std::string type = kFirstBytes + Varint(kDataType.size()) + std::string(kDataType);
  if (!in.TakeText(type) || !in.TakeText(std::string_view(&kSecondBytes, 1))) {
    return std::nullopt;
  }
  const auto message = in.TakeVarint();
  size_t taken = frame.size() - in.left();
  if (!message || taken + *message != length) {
    return std::nullopt;
  }
  StreamHead head{.kind = Kind::kData, .bytes = kFrameHeaderBytes + taken};
  if (*message == 0) {
    return head;
  }
  if (!in.TakeText(std::string_view(&kFirstBytes, 1))) {
    return std::nullopt;
  }
  const auto bytes = in.TakeVarint();
  taken = frame.size() - in.left();
  if (!bytes || taken + *bytes != length) {
    return std::nullopt;
  }
  head.bytes = kFrameHeaderBytes + taken;
  head.value = static_cast<uint32_t>(*bytes);
  return head;
}

struct Any {
  std::string_view type;
  std::string_view value;
};

std::optional<Any> ReadAny(std::string_view bytes) {
  Any any;
  ProtoReader in(bytes);
  while (in.Next()) {
    if (in.field() == 1 && in.is_bytes()) {
      any.type = in.bytes();
    } else if (in.field() == 2 && in.is_bytes()) {
      any.value = in.bytes();
    }
  }
  return in.ok() ? std::optional(any) : std::nullopt;
}

StreamHead ReadShort(std::string_view frame, size_t bytes) {
  const std::optional<Any> any = ReadAny(frame);
  if (!any) {
    return {.kind = Kind::kBad};
  }
  if (any->type.substr(any->type.rfind('/') + 1) != kWindowType) {
    return {.kind = Kind::kOther, .bytes = bytes};
  }
  uint64_t update = 0;
  ProtoReader in(any->value);
  while (in.Next()) {
    if (in.field() == 1 && !in.is_bytes()) {
      update = in.number();
    }
  }
  if (!in.ok() || update > kMaxUpdate) {
    return {.kind = Kind::kBad};
  }
  return {.kind = Kind::kWindow, .bytes = bytes, .value = static_cast<uint32_t>(update)};
}

}  // namespace

std::string StreamDataHead(uint32_t stream, size_t bytes) {
  const std::string data = kFirstBytes + Varint(bytes);
  std::string any = kFirstBytes + Varint(kDataType.size()) + std::string(kDataType);
  any += kSecondBytes + Varint(data.size() + bytes) + data;
  return FrameHeader(stream, any.size() + bytes, 0) + any;
}

std::string StreamWindowFrame(uint32_t stream, uint32_t update) {
  ProtoWriter window;
  window.Varint(1, update);
  ProtoWriter any;
  any.Bytes(1, kWindowType);
  any.Bytes(2, window.str());
  return FrameHeader(stream, any.str().size(), 0) + any.str();
}

std::string StreamEndFrame(uint32_t stream) {
  return FrameHeader(stream, 0, kRemoteClosed | kNoData);
}

StreamHead ReadStreamHead(uint32_t stream, std::string_view bytes) {
  if (bytes.size() < kFrameHeaderBytes) {
    return {};
  }
  const size_t length = BigEndian(bytes);
  const auto type = static_cast<uint8_t>(bytes[8]);
  const auto flags = static_cast<uint8_t>(bytes[9]);
  const size_t whole = kFrameHeaderBytes + length;
  if (length > kMaxFrameBytes || (type == kFrameData && BigEndian(bytes.substr(4)) != stream)) {
    return {.kind = Kind::kBad};
  }
  const bool last = (flags & kRemoteClosed) != 0;
  if (type == kFrameData && (flags & kNoData) != 0 && length == 0) {
    return {.kind = last ? Kind::kEnd : Kind::kOther, .bytes = whole};
  }
  const std::string_view begin = bytes.substr(kFrameHeaderBytes, length);
  if (type == kFrameData) {
    if (std::optional<StreamHead> data = ReadData(begin, length)) {
      data->last = last;
      return *data;
    }
  }
  if (whole > kStreamHeadBytes) {
    // Of data there would be enough to tell.
    return {.kind = bytes.size() < kStreamHeadBytes ? Kind::kPart : Kind::kBad};
  }
  if (bytes.size() < whole) {
    return {};
  }
  if (type != kFrameData) {
    return {.kind = Kind::kOther, .bytes = whole};
  }
  StreamHead head = ReadShort(begin, whole);
  if (last && head.kind != Kind::kBad) {
    head.kind = Kind::kEnd;
  }
  return head;
}

}  // namespace gantry::io

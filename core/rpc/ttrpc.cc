// SPDX-License-Identifier: Apache-2.0
//
// ttrpc's frames and messages in bytes. A frame that is too large is skipped as it comes, never
// held, and reported by its header, so that its sender gets an error and the connection lives on.
// Text in a status is made valid UTF-8, since Go's protobuf refuses the whole answer otherwise.
#include "core/rpc/ttrpc.h"

#include <algorithm>

#include <gantry/protowire.h>

namespace gantry::rpc {
namespace {

// Fields of ttrpc.Request, ttrpc.KeyValue, ttrpc.Response and google.rpc.Status.
// Source: containerd/ttrpc 1.2, request.proto; googleapis, google/rpc/status.proto.
constexpr uint32_t kService = 1;
constexpr uint32_t kMethod = 2;
constexpr uint32_t kRequestPayload = 3;
constexpr uint32_t kTimeoutNano = 4;
constexpr uint32_t kMetadataPair = 5;
constexpr uint32_t kPairKey = 1;
constexpr uint32_t kPairValue = 2;
constexpr uint32_t kStatus = 1;
constexpr uint32_t kResponsePayload = 2;
constexpr uint32_t kStatusCode = 1;
constexpr uint32_t kStatusMessage = 2;

uint32_t BigEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (const char c : bytes.substr(0, 4)) {
    value = (value << 8) | static_cast<uint8_t>(c);
  }
  return value;
}

void AppendBigEndian(std::string& out, uint32_t value) {
  for (const int shift : {24, 16, 8, 0}) {
    out.push_back(static_cast<char>((value >> shift) & 0xff));
  }
}

/// The length of the UTF-8 sequence that `text` begins with; 0: there is none.
/// Source: RFC 3629, section 4.
size_t SequenceLength(std::string_view text) {
  const auto at = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = at(0);
  if (lead < 0x80) {
    return 1;
  }
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) {
    return 0;
  }
  const uint8_t second_min = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const uint8_t second_max = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (at(1) < second_min || at(1) > second_max) {
    return 0;
  }
  for (size_t i = 2; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) {
      return 0;
    }
  }
  return length;
}

std::unexpected<Error> Malformed(std::string_view what) {
  return Fail(Code::kInvalidArgument, "decode {}: malformed message", what);
}

Result<std::pair<std::string, std::string>> DecodePair(std::string_view bytes) {
  std::pair<std::string, std::string> pair;
  ProtoReader in(bytes);
  while (in.Next()) {
    if (in.field() == kPairKey && in.is_bytes()) {
      pair.first = in.text();
    } else if (in.field() == kPairValue && in.is_bytes()) {
      pair.second = in.text();
    }
  }
  if (!in.ok()) {
    return Malformed("ttrpc metadata");
  }
  return pair;
}

Status TakeRequestField(const ProtoReader& in, Request& request) {
  if (in.field() == kTimeoutNano && !in.is_bytes()) {
    request.timeout = std::chrono::nanoseconds(in.integer());
    return {};
  }
  if (in.field() <= kMetadataPair && !in.is_bytes()) {
    return Malformed("ttrpc request");
  }
  switch (in.field()) {
    case kService:
      request.service = in.text();
      break;
    case kMethod:
      request.method = in.text();
      break;
    case kRequestPayload:
      request.payload = in.text();
      break;
    case kMetadataPair: {
      if (request.metadata.size() == kMaxMetadata) {
        return Fail(Code::kInvalidArgument, "decode ttrpc request: more than {} metadata pairs",
                    kMaxMetadata);
      }
      GANTRY_TRY(auto pair, DecodePair(in.bytes()));
      request.metadata.push_back(std::move(pair));
      break;
    }
    default:
      break;
  }
  return {};
}

/// Status as (code, message).
Result<Error> DecodeStatus(std::string_view bytes) {
  Error status{Code::kOk, 0, {}, {}};
  ProtoReader in(bytes);
  while (in.Next()) {
    if (in.field() == kStatusCode && !in.is_bytes()) {
      status.code = static_cast<Code>(static_cast<int>(in.integer()));
    } else if (in.field() == kStatusMessage && in.is_bytes()) {
      status.message = in.text();
    }
  }
  if (!in.ok()) {
    return Fail(Code::kInternal, "decode ttrpc status: malformed message");
  }
  return status;
}

}  // namespace

std::string CleanText(std::string_view text, size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    if (out.size() + std::max<size_t>(length, 1) > max_bytes) {
      break;
    }
    out.append(length == 0 ? "?" : text.substr(0, length));
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

FrameHeader DecodeFrameHeader(std::string_view bytes) {
  return FrameHeader{BigEndian(bytes), BigEndian(bytes.substr(4)), static_cast<uint8_t>(bytes[8]),
                     static_cast<uint8_t>(bytes[9])};
}

Result<std::string> EncodeFrame(uint32_t stream, FrameType type, uint8_t flags,
                                std::string_view data) {
  if (data.size() > kMaxFrameBytes) {
    return Fail(Code::kResourceExhausted, "encode ttrpc frame: {} bytes are more than {}",
                data.size(), kMaxFrameBytes);
  }
  std::string out;
  out.reserve(kFrameHeaderBytes + data.size());
  AppendBigEndian(out, static_cast<uint32_t>(data.size()));
  AppendBigEndian(out, stream);
  out.push_back(static_cast<char>(type));
  out.push_back(static_cast<char>(flags));
  out.append(data);
  return out;
}

void FrameSplitter::Feed(std::string_view bytes) {
  const size_t skipped = std::min(skip_, bytes.size());
  skip_ -= skipped;
  bytes.remove_prefix(skipped);
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  buffer_.append(bytes);
}

std::optional<Frame> FrameSplitter::Next() {
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  if (rest.size() < kFrameHeaderBytes) {
    return std::nullopt;
  }
  const FrameHeader header = DecodeFrameHeader(rest);
  if (header.length > kMaxFrameBytes) {
    return SkipOversized(header);
  }
  if (rest.size() < kFrameHeaderBytes + header.length) {
    return std::nullopt;
  }
  Frame frame{header, std::string(rest.substr(kFrameHeaderBytes, header.length)), false};
  begin_ += kFrameHeaderBytes + header.length;
  if (begin_ == buffer_.size()) {
    // One big frame shall not leave its buffer behind for the connection's life.
    std::string().swap(buffer_);
    begin_ = 0;
  }
  return frame;
}

std::optional<Frame> FrameSplitter::SkipOversized(const FrameHeader& header) {
  begin_ += kFrameHeaderBytes;
  const size_t here = std::min<size_t>(buffer_.size() - begin_, header.length);
  begin_ += here;
  skip_ = header.length - here;
  return Frame{header, std::string(), true};
}

std::string_view FindMetadata(const Metadata& metadata, std::string_view key) {
  const auto found = std::ranges::find(metadata, key, &Metadata::value_type::first);
  return found == metadata.end() ? std::string_view() : std::string_view(found->second);
}

std::string EncodeRequest(const Request& request) {
  ProtoWriter out;
  out.Text(kService, request.service);
  out.Text(kMethod, request.method);
  out.Text(kRequestPayload, request.payload);
  if (request.timeout.count() != 0) {
    out.Int(kTimeoutNano, request.timeout.count());
  }
  for (const auto& [key, value] : request.metadata) {
    ProtoWriter pair;
    pair.Text(kPairKey, key);
    pair.Text(kPairValue, value);
    out.Bytes(kMetadataPair, pair.str());
  }
  return out.Take();
}

Result<Request> DecodeRequest(std::string_view bytes) {
  Request request;
  ProtoReader in(bytes);
  while (in.Next()) {
    GANTRY_CHECK_OK(TakeRequestField(in, request));
  }
  if (!in.ok()) {
    return Malformed("ttrpc request");
  }
  return request;
}

std::string EncodeResponse(const Response& response) {
  ProtoWriter out;
  if (response.code != Code::kOk) {
    ProtoWriter status;
    status.Int(kStatusCode, static_cast<int>(response.code));
    status.Text(kStatusMessage, CleanText(response.message));
    out.Bytes(kStatus, status.str());
    return out.Take();
  }
  out.Text(kResponsePayload, response.payload);
  return out.Take();
}

std::string EncodeResponse(const Result<std::string>& result) {
  if (result) {
    ProtoWriter out;
    out.Text(kResponsePayload, *result);
    return out.Take();
  }
  // A failure with code 0 would read as success.
  const Code code = result.error().code == Code::kOk ? Code::kInternal : result.error().code;
  return EncodeResponse(Response{code, result.error().message, {}});
}

Result<std::string> DecodeResponse(std::string_view bytes) {
  Error status{Code::kOk, 0, {}, {}};
  std::string payload;
  ProtoReader in(bytes);
  while (in.Next()) {
    if (in.field() == kStatus && in.is_bytes()) {
      GANTRY_TRY(status, DecodeStatus(in.bytes()));
    } else if (in.field() == kResponsePayload && in.is_bytes()) {
      payload = in.text();
    }
  }
  if (!in.ok()) {
    return Fail(Code::kInternal, "decode ttrpc response: malformed message");
  }
  if (status.code != Code::kOk) {
    return std::unexpected(std::move(status));
  }
  return payload;
}

}  // namespace gantry::rpc

// SPDX-License-Identifier: Apache-2.0
//
// Structures to protobuf wire bytes and back, driven by one list of fields in
// each structure, so that writer and reader cannot disagree:
//
//     struct Adopt {
//       int32_t pid = 0;
//       void Each(this auto& self, auto&& field) { field(1, self.pid); }
//     };
//
// Fields may be integers, bool, std::string, such structures, std::optional of
// these (absent when unset) and std::vector of these (repeated, not packed).
// Zero and empty are not written, so no field may start as something else;
// unknown fields are skipped, so that a newer peer may add some. Messages nest
// as deep as their types do, and what comes from a peer is bounded by the reader
// of its frame. For what gantry's own programs say to each other; services that
// others define are protobuf's (proto/).
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gantry/error.h>
#include <gantry/protowire.h>

namespace gantry {

template <class T>
std::string EncodeProto(const T& message);

/// Errors: kInvalidArgument for malformed bytes, and for a list longer than 64 k.
template <class T>
Result<T> DecodeProto(std::string_view bytes);

namespace proto_message {

/// More elements than this in one repeated field are refused.
inline constexpr size_t kMaxElements = 65536;

template <class T>
struct Repeated : std::false_type {};

template <class T>
struct Repeated<std::vector<T>> : std::true_type {};

template <class T>
struct Maybe : std::false_type {};

template <class T>
struct Maybe<std::optional<T>> : std::true_type {};

template <class T>
void Put(ProtoWriter& out, uint32_t number, const T& value, bool even_if_zero) {
  if constexpr (Repeated<T>::value) {
    for (const auto& element : value) {
      Put(out, number, element, true);
    }
  } else if constexpr (Maybe<T>::value) {
    if (value) {
      Put(out, number, *value, true);
    }
  } else if constexpr (std::integral<T>) {
    if (even_if_zero || value != 0) {
      out.Varint(number, static_cast<uint64_t>(value));
    }
  } else if constexpr (std::same_as<T, std::string>) {
    if (even_if_zero || !value.empty()) {
      out.Bytes(number, value);
    }
  } else {
    out.Bytes(number, EncodeProto(value));
  }
}

/// False: the bytes of a nested structure were malformed, or there are too many.
template <class T>
bool Get(const ProtoReader& in, T& value) {
  if constexpr (Repeated<T>::value) {
    return value.size() < kMaxElements && Get(in, value.emplace_back());
  } else if constexpr (Maybe<T>::value) {
    return Get(in, value.emplace());
  } else if constexpr (std::same_as<T, bool>) {
    value = in.number() != 0;
    return !in.is_bytes();
  } else if constexpr (std::integral<T>) {
    value = static_cast<T>(in.number());
    return !in.is_bytes();
  } else if constexpr (std::same_as<T, std::string>) {
    value = in.text();
    return in.is_bytes();
  } else {
    auto nested = DecodeProto<T>(in.bytes());
    if (nested && in.is_bytes()) {
      value = std::move(*nested);
    }
    return nested && in.is_bytes();
  }
}

}  // namespace proto_message

template <class T>
std::string EncodeProto(const T& message) {
  ProtoWriter out;
  message.Each(
      [&](uint32_t number, const auto& value) { proto_message::Put(out, number, value, false); });
  return out.Take();
}

template <class T>
Result<T> DecodeProto(std::string_view bytes) {
  T message;
  ProtoReader in(bytes);
  bool good = true;
  while (good && in.Next()) {
    message.Each([&](uint32_t number, auto& value) {
      if (number == in.field()) {
        good = proto_message::Get(in, value);
      }
    });
  }
  if (!good || !in.ok()) {
    return Fail(Code::kInvalidArgument, "decode a message: field {} is malformed", in.field());
  }
  return message;
}

}  // namespace gantry

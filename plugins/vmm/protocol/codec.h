// SPDX-License-Identifier: Apache-2.0
//
// The messages of proto/gantry/guest/agent.proto to bytes and back, by hand, driven by one list of
// fields in each structure, so that writer and reader cannot disagree:
//
//     struct Start {
//       std::string container;
//       void Each(this auto& self, auto&& field) { field(1, self.container); }
//     };
//
// Fields may be integers, bool, std::string, such structures, std::optional of these (absent when
// unset) and std::vector of these (repeated, not packed). Zero and empty are not written; fields
// that are not known are skipped, so that the other side may be newer.
//
// By hand and not by protobuf's lite runtime for the agent's sake: see README.md.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <gantry/error.h>
#include <gantry/protowire.h>

namespace gantry::vmm::protocol {

/// Of one repeated field; a message with more is refused.
inline constexpr size_t kMaxElements = 32768;

/// Messages are as deep inside each other as their types are.
template <class T>
std::string Encode(const T& message);

/// Errors: kInvalidArgument: malformed bytes, or a list that is too long.
template <class T>
Result<T> Decode(std::string_view bytes);

namespace codec {

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
    out.Bytes(number, Encode(value));
  }
}

/// False: a nested message is malformed, the field is of another kind, or there are too many.
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
    auto nested = Decode<T>(in.bytes());
    if (nested && in.is_bytes()) {
      value = std::move(*nested);
    }
    return nested && in.is_bytes();
  }
}

}  // namespace codec

template <class T>
std::string Encode(const T& message) {
  ProtoWriter out;
  message.Each([&](uint32_t number, const auto& value) { codec::Put(out, number, value, false); });
  return out.Take();
}

template <class T>
Result<T> Decode(std::string_view bytes) {
  T message;
  ProtoReader in(bytes);
  bool good = true;
  while (good && in.Next()) {
    message.Each([&](uint32_t number, auto& value) {
      if (number == in.field()) {
        good = codec::Get(in, value);
      }
    });
  }
  if (!good || !in.ok()) {
    return Fail(Code::kInvalidArgument, "decode a message of the guest agent's: field {}",
                in.field());
  }
  return message;
}

}  // namespace gantry::vmm::protocol

// SPDX-License-Identifier: Apache-2.0
//
// The protobuf wire format by hand, for the programs that must stay small and
// static (keeper, shim) and for backends' state blobs: a writer, and a reader
// that never reads past its input. Not a replacement for generated code where
// protobuf is linked anyway.
// Source: protobuf.dev/programming-guides/encoding (wire types 0, 1, 2, 5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry {

/// Appends fields to a message. Thread: any, one at a time.
class ProtoWriter {
 public:
  /// Varint field; written even when 0.
  void Varint(uint32_t field, uint64_t value);

  void Bool(uint32_t field, bool value) { Varint(field, value ? 1 : 0); }

  /// As protobuf's int32 and int64: negative numbers take ten bytes.
  void Int(uint32_t field, int64_t value) { Varint(field, static_cast<uint64_t>(value)); }

  /// Fixed 64-bit field; written even when 0.
  void Double(uint32_t field, double value);
  /// string, bytes or an encoded message.
  void Bytes(uint32_t field, std::string_view value);
  /// As `Bytes`, left out when empty.
  void Text(uint32_t field, std::string_view value);

  const std::string& str() const { return out_; }

  std::string Take() { return std::move(out_); }

 private:
  void Raw(uint64_t value);

  std::string out_;
};

/// Walks over the fields of a message. The input must outlive the reader and
/// the views it hands out. Thread: any, one at a time.
///
///     ProtoReader in(bytes);
///     while (in.Next()) {
///       switch (in.field()) { case 1: id = in.text(); break; default: break; }
///     }
///     if (!in.ok()) { ...malformed... }
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view in) : rest_(in) {}

  /// Moves to the next field. False at the end or where the input is malformed.
  bool Next();

  /// False once the input turned out malformed (also: a group, which is refused).
  bool ok() const { return ok_; }

  uint32_t field() const { return field_; }

  /// The value of a varint or fixed-width field, 0 for the others.
  uint64_t number() const { return number_; }

  int64_t integer() const { return static_cast<int64_t>(number_); }

  /// The value of a length-delimited field, empty for the others.
  std::string_view bytes() const { return bytes_; }

  std::string text() const { return std::string(bytes_); }

  /// The field's wire type is length-delimited.
  bool is_bytes() const { return is_bytes_; }

 private:
  std::optional<uint64_t> ReadVarint();
  bool Take(size_t count);
  bool Malformed();

  std::string_view rest_;
  std::string_view bytes_;
  uint64_t number_ = 0;
  uint32_t field_ = 0;
  bool is_bytes_ = false;
  bool ok_ = true;
};

}  // namespace gantry

// SPDX-License-Identifier: Apache-2.0
//
// JSON from elsewhere, read with checks: every complaint names the document and
// the place in it. Its shape is checked by <gantry/json.h> (`kSpecJson`). The
// library behind it is seen in json.cc only, and its exceptions end there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/error.h>

namespace gantry::oci {

/// A value in a parsed document, or the place where there is none. Cheap to
/// copy; keeps the document alive. Null is taken for absent everywhere, since
/// Go programs write it for empty lists.
/// Thread: any; documents do not change.
class Json {
 public:
  /// `what` is what errors call the document: a path, "exec spec".
  /// Errors: kInvalidArgument: not JSON (with line and column), not UTF-8, too
  /// deep, too many values, too long. `at`: the RFC 6901 pointer of the text in that document,
  /// where it is a part of one.
  static Result<Json> Parse(std::string_view text, std::string_view what, std::string at = {});

  bool absent() const { return node_ == nullptr; }

  bool is_object() const;

  /// A member; absent where this is absent or has none. Errors: a check on the
  /// member's kind is left to whoever reads it; this one must be an object,
  /// which `CheckObject` says.
  Json operator[](std::string_view key) const;

  /// An object, or absent.
  Status CheckObject() const;

  /// Read into `out`, which stays as it was where this is absent.
  /// Errors: kInvalidArgument: another type, out of range.
  Status Read(bool& out) const;
  Status Read(std::string& out) const;
  Status Read(int64_t& out) const;
  Status Read(int32_t& out) const;
  Status Read(uint64_t& out) const;
  Status Read(uint32_t& out) const;
  Status Read(uint16_t& out) const;
  Status Read(std::vector<std::string>& out) const;
  Status Read(std::vector<uint32_t>& out) const;
  Status Read(std::map<std::string, std::string>& out) const;

  template <class T>
  Status Read(std::optional<T>& out) const {
    if (absent()) {
      return {};
    }
    T value{};
    GANTRY_CHECK_OK(Read(value));
    out = std::move(value);
    return {};
  }

  /// Elements of an array; none where absent. Errors: kInvalidArgument.
  Result<std::vector<Json>> Items() const;
  /// Members of an object in the order of their names; none where absent.
  Result<std::vector<std::pair<std::string, Json>>> Members() const;

  /// This value as text; empty where absent.
  std::string Text() const;

  /// An error about this place: `check '<document>': <pointer>: <cause>`.
  std::unexpected<Error> Wrong(std::string_view cause) const;
  /// The same with what is there behind it, cut short: `<cause>, found <value>`.
  std::unexpected<Error> WrongValue(std::string_view cause) const;

 private:
  struct Document;

  Json(std::shared_ptr<const Document> document, const void* node, std::string pointer)
      : document_(std::move(document)), node_(node), pointer_(std::move(pointer)) {}

  std::unexpected<Error> WrongKind(std::string_view expected) const;
  Result<int64_t> Signed() const;
  Result<uint64_t> Unsigned(uint64_t max) const;

  std::shared_ptr<const Document> document_;
  /// Null: absent.
  const void* node_ = nullptr;
  /// RFC 6901.
  std::string pointer_;
};

/// `text` with the object `key` set to `value_json`. Errors: kInvalidArgument.
Result<std::string> WithMember(std::string_view text, std::string_view what, const std::string& key,
                               std::string_view value_json);

/// `text` without the member `key` of the object. Errors: kInvalidArgument.
Result<std::string> WithoutMember(std::string_view text, std::string_view what,
                                  std::string_view key);

/// `over` on top of `base`, objects merged key by key; empty text is `{}`.
/// Errors: kInvalidArgument: not objects.
Result<std::string> MergeObjects(std::string_view base, std::string_view over);

/// `text` as a JSON string, with quotes; what is not UTF-8 is replaced.
std::string Quote(std::string_view text);

}  // namespace gantry::oci

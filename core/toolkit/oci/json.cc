// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/toolkit/oci/json.h>

namespace gantry::oci {
namespace {

using Node = nlohmann::json;

const Node& As(const void* node) { return *static_cast<const Node*>(node); }

std::string_view KindOf(const Node& node) {
  switch (node.type()) {
    case Node::value_t::null:
      return "null";
    case Node::value_t::boolean:
      return "a boolean";
    case Node::value_t::string:
      return "a string";
    case Node::value_t::array:
      return "an array";
    case Node::value_t::object:
      return "an object";
    default:
      return "a number";
  }
}

Result<Node> ParseNode(std::string_view text, std::string_view what) {
  return gantry::ParseJson(text, what, kSpecJson);
}

Result<Node> ParseObject(std::string_view text, std::string_view what) {
  if (text.empty()) {
    return Node::object();
  }
  GANTRY_TRY(Node node, ParseNode(text, what));
  if (!node.is_object()) {
    return Fail(Code::kInvalidArgument, "check '{}': expected an object, found {}", what,
                KindOf(node));
  }
  return node;
}

std::string Dump(const Node& node) {
  return node.dump(-1, ' ', false, Node::error_handler_t::replace);
}

std::string PointerTo(const std::string& parent, std::string_view key) {
  std::string pointer = parent + "/";
  for (const char c : key.substr(0, 80)) {
    pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return pointer;
}

}  // namespace

struct Json::Document {
  std::string what;
  Node root;
};

Result<Json> Json::Parse(std::string_view text, std::string_view what, std::string at) {
  GANTRY_TRY(Node root, ParseNode(text, what));
  auto document = std::make_shared<const Document>(std::string(what), std::move(root));
  const Node* node = document->root.is_null() ? nullptr : &document->root;
  return Json(std::move(document), node, std::move(at));
}

bool Json::is_object() const { return !absent() && As(node_).is_object(); }

Json Json::operator[](std::string_view key) const {
  const Node* child = nullptr;
  if (is_object()) {
    const auto found = As(node_).find(key);
    child = found == As(node_).end() || found->is_null() ? nullptr : &*found;
  }
  return {document_, child, PointerTo(pointer_, key)};
}

Status Json::CheckObject() const {
  if (!absent() && !As(node_).is_object()) {
    return WrongKind("an object");
  }
  return {};
}

Status Json::Read(bool& out) const {
  if (absent()) {
    return {};
  }
  if (!As(node_).is_boolean()) {
    return WrongKind("a boolean");
  }
  out = As(node_).get<bool>();
  return {};
}

Status Json::Read(std::string& out) const {
  if (absent()) {
    return {};
  }
  if (!As(node_).is_string()) {
    return WrongKind("a string");
  }
  const auto& text = As(node_).get_ref<const std::string&>();
  if (text.contains('\0')) {
    return Wrong("a string with a NUL character");
  }
  out = text;
  return {};
}

Status Json::Read(int64_t& out) const {
  if (absent()) {
    return {};
  }
  GANTRY_TRY(out, Signed());
  return {};
}

Status Json::Read(int32_t& out) const {
  if (absent()) {
    return {};
  }
  GANTRY_TRY(const int64_t value, Signed());
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    return WrongValue("out of range");
  }
  out = static_cast<int32_t>(value);
  return {};
}

Status Json::Read(uint64_t& out) const {
  if (absent()) {
    return {};
  }
  GANTRY_TRY(out, Unsigned(std::numeric_limits<uint64_t>::max()));
  return {};
}

Status Json::Read(uint32_t& out) const {
  if (absent()) {
    return {};
  }
  GANTRY_TRY(const uint64_t value, Unsigned(std::numeric_limits<uint32_t>::max()));
  out = static_cast<uint32_t>(value);
  return {};
}

Status Json::Read(uint16_t& out) const {
  if (absent()) {
    return {};
  }
  GANTRY_TRY(const uint64_t value, Unsigned(std::numeric_limits<uint16_t>::max()));
  out = static_cast<uint16_t>(value);
  return {};
}

Result<int64_t> Json::Signed() const {
  const Node& node = As(node_);
  if (!node.is_number_integer()) {
    return WrongKind("an integer");
  }
  if (node.is_number_unsigned() &&
      node.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return WrongValue("out of range");
  }
  return node.get<int64_t>();
}

Result<uint64_t> Json::Unsigned(uint64_t max) const {
  const Node& node = As(node_);
  if (!node.is_number_integer()) {
    return WrongKind("an integer");
  }
  if (!node.is_number_unsigned() && node.get<int64_t>() < 0) {
    return WrongValue("must not be negative");
  }
  const auto value = node.get<uint64_t>();
  if (value > max) {
    return WrongValue(Format("above {}", max));
  }
  return value;
}

Status Json::Read(std::vector<std::string>& out) const {
  GANTRY_TRY(const auto items, Items());
  std::vector<std::string> values(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].absent()) {
      return items[i].Wrong("expected a string, found null");
    }
    GANTRY_CHECK_OK(items[i].Read(values[i]));
  }
  out = std::move(values);
  return {};
}

Status Json::Read(std::vector<uint32_t>& out) const {
  GANTRY_TRY(const auto items, Items());
  std::vector<uint32_t> values(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    GANTRY_CHECK_OK(items[i].Read(values[i]));
  }
  out = std::move(values);
  return {};
}

Status Json::Read(std::map<std::string, std::string>& out) const {
  GANTRY_TRY(const auto members, Members());
  std::map<std::string, std::string> values;
  for (const auto& [key, member] : members) {
    GANTRY_CHECK_OK(member.Read(values[key]));
  }
  out = std::move(values);
  return {};
}

Result<std::vector<Json>> Json::Items() const {
  std::vector<Json> items;
  if (absent()) {
    return items;
  }
  if (!As(node_).is_array()) {
    return WrongKind("an array");
  }
  items.reserve(As(node_).size());
  for (const Node& item : As(node_)) {
    items.push_back(
        Json(document_, item.is_null() ? nullptr : &item, Format("{}/{}", pointer_, items.size())));
  }
  return items;
}

Result<std::vector<std::pair<std::string, Json>>> Json::Members() const {
  std::vector<std::pair<std::string, Json>> members;
  GANTRY_CHECK_OK(CheckObject());
  if (absent()) {
    return members;
  }
  for (const auto& [key, value] : As(node_).items()) {
    members.emplace_back(key, (*this)[key]);
  }
  return members;
}

std::string Json::Text() const { return absent() ? std::string() : Dump(As(node_)); }

std::unexpected<Error> Json::Wrong(std::string_view cause) const {
  return Fail(Code::kInvalidArgument, "check '{}': {}{}{}",
              document_ ? document_->what : std::string("json"), pointer_,
              pointer_.empty() ? "" : ": ", cause);
}

std::unexpected<Error> Json::WrongValue(std::string_view cause) const {
  constexpr size_t kShown = 80;
  std::string value = Text();
  if (value.size() > kShown) {
    size_t end = kShown;
    // Not within a character: the bytes behind its first are 10xxxxxx.
    while (end > 0 && (static_cast<unsigned char>(value[end]) & 0xC0U) == 0x80U) {
      --end;
    }
    value.resize(end);
    value += "...";
  }
  return Wrong(Format("{}, found {}", cause, value.empty() ? "nothing" : value));
}

std::unexpected<Error> Json::WrongKind(std::string_view expected) const {
  return Wrong(Format("expected {}, found {}", expected,
                      As(node_).is_number_float() ? "a fraction" : KindOf(As(node_))));
}

Result<std::string> WithMember(std::string_view text, std::string_view what, const std::string& key,
                               std::string_view value_json) {
  GANTRY_TRY(Node node, ParseObject(text, what));
  GANTRY_TRY(node[key], ParseNode(value_json, key));
  return Dump(node);
}

Result<std::string> WithoutMember(std::string_view text, std::string_view what,
                                  std::string_view key) {
  GANTRY_TRY(Node node, ParseObject(text, what));
  node.erase(key);
  return Dump(node);
}

Result<std::string> MergeObjects(std::string_view base, std::string_view over) {
  GANTRY_TRY(Node merged, ParseObject(base, "options"));
  GANTRY_TRY(const Node top, ParseObject(over, "options"));
  merged.update(top, true);
  return Dump(merged);
}

std::string Quote(std::string_view text) { return Dump(Node(std::string(text))); }

}  // namespace gantry::oci

// SPDX-License-Identifier: Apache-2.0
//
// Every request that QEMU's driver sends, as the unit tests have recorded it, against what a real
// QEMU says of its commands: names, members, types, which must be there.
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plugins/vmm/hypervisor/control_socket.h"
#include "tests/vmm/harness/guest_vm.h"

namespace gantry::vmm {
namespace {

using Json = nlohmann::json;

/// A monitor as anybody could write it.
class Monitor {
 public:
  explicit Monitor(const std::string& path)
      : socket_(ControlSocket::Await("QEMU", path, Soon(), nullptr).value()) {
    ReadLine();
    Ask(R"({"execute":"qmp_capabilities"})");
  }

  Json Ask(const std::string& request) {
    socket_.Send(request + "\n", {}, Soon()).value();
    while (true) {
      Json line = Json::parse(ReadLine());
      if (line.contains("return") || line.contains("error")) {
        return line;
      }
    }
  }

 private:
  std::string ReadLine() {
    size_t end = 0;
    while ((end = text_.find('\n')) == std::string::npos) {
      socket_.Receive(text_, Soon()).value();
    }
    std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return line;
  }

  ControlSocket socket_;
  std::string text_;
};

class Schema {
 public:
  explicit Schema(const Json& entities) {
    for (const Json& one : entities) {
      const std::string name = one["name"];
      (one["meta-type"] == "command" ? commands_ : types_)[name] = one;
    }
  }

  /// Empty: nothing is wrong. `open`: it may have more members than are described.
  std::string WrongWith(const std::string& command, const Json& arguments, bool open) const {
    const auto found = commands_.find(command);
    if (found == commands_.end()) {
      return "there is no command " + command;
    }
    return OfObject(types_.at(found->second["arg-type"]), arguments, open);
  }

 private:
  std::string Of(const std::string& type, const Json& value) const {
    const Json& entity = types_.at(type);
    const std::string meta = entity["meta-type"];
    if (meta == "object") {
      return OfObject(entity, value, false);
    }
    if (meta == "array") {
      return OfArray(entity, value);
    }
    if (meta == "enum") {
      return OfEnum(entity, value);
    }
    if (meta == "alternate") {
      return OfAlternate(entity, value);
    }
    return OfBuiltin(entity["json-type"], value);
  }

  std::string OfObject(const Json& entity, const Json& value, bool open) const {
    if (!value.is_object()) {
      return "is no object: " + value.dump();
    }
    std::map<std::string, Json> members;
    for (const Json& member : entity["members"]) {
      members[member["name"]] = member;
    }
    if (entity.contains("tag") && value.contains(entity["tag"].get<std::string>())) {
      const Json& tag = value[entity["tag"].get<std::string>()];
      for (const Json& variant : entity["variants"]) {
        if (variant["case"] == tag) {
          const Json& more = types_.at(variant["type"]);
          for (const Json& member : more["members"]) {
            members[member["name"]] = member;
          }
        }
      }
    }
    for (const auto& [name, member] : members) {
      if (!value.contains(name)) {
        if (!member.contains("default")) {
          return "has no " + name + ": " + value.dump();
        }
        continue;
      }
      if (std::string wrong = Of(member["type"], value[name]); !wrong.empty()) {
        return name + " " + wrong;
      }
    }
    for (const auto& [name, member] : value.items()) {
      if (!open && !members.contains(name)) {
        return "has an unknown " + name + ": " + value.dump();
      }
    }
    return {};
  }

  std::string OfArray(const Json& entity, const Json& value) const {
    if (!value.is_array()) {
      return "is no array: " + value.dump();
    }
    for (const Json& one : value) {
      if (std::string wrong = Of(entity["element-type"], one); !wrong.empty()) {
        return wrong;
      }
    }
    return {};
  }

  static std::string OfEnum(const Json& entity, const Json& value) {
    for (const Json& one : entity["members"]) {
      if (one["name"] == value) {
        return {};
      }
    }
    return "is no such word: " + value.dump();
  }

  std::string OfAlternate(const Json& entity, const Json& value) const {
    for (const Json& one : entity["members"]) {
      if (Of(one["type"], value).empty()) {
        return {};
      }
    }
    return "is none of the kinds that it may be: " + value.dump();
  }

  static std::string OfBuiltin(const std::string& type, const Json& value) {
    const bool good =
        type == "value" || (type == "string" && value.is_string()) ||
        (type == "int" && value.is_number_integer()) || (type == "number" && value.is_number()) ||
        (type == "boolean" && value.is_boolean()) || (type == "null" && value.is_null());
    return good ? "" : "is no " + type + ": " + value.dump();
  }

  std::map<std::string, Json> commands_;
  std::map<std::string, Json> types_;
};

class QmpSchemaTest : public testing::TestWithParam<const char*> {};

TEST_P(QmpSchemaTest, EachRequestIsOneThatQemuHas) {
  if (const auto& files = TestImage::Get(); !files.why_not.empty()) {
    GTEST_SKIP() << files.why_not;
  }
  GuestVm guest;
  guest.StartUnchecked();
  Monitor monitor(guest.folder() + "/control");
  const Schema schema(monitor.Ask(R"({"execute":"query-qmp-schema"})")["return"]);
  std::ifstream golden(std::string(GANTRY_GOLDEN) + "/" + GetParam());
  ASSERT_TRUE(golden);
  std::set<std::string> seen;
  for (std::string line; std::getline(golden, line);) {
    const Json request = Json::parse(line);
    const std::string command = request["execute"];
    const Json arguments = request.value("arguments", Json::object());
    // The properties of a device are its own.
    const bool device = command == "device_add";
    EXPECT_EQ(schema.WrongWith(command, arguments, device), "") << line;
    seen.insert(command);
    if (!device) {
      continue;
    }
    std::set<std::string> known = {"driver", "id", "bus"};
    const Json asked = {{"execute", "device-list-properties"},
                        {"arguments", {{"typename", arguments["driver"]}}}};
    const Json properties = monitor.Ask(asked.dump());
    for (const Json& one : properties["return"]) {
      known.insert(one["name"]);
    }
    for (const auto& [name, value] : arguments.items()) {
      EXPECT_TRUE(known.contains(name)) << name << " in " << line;
    }
  }
  EXPECT_GE(seen.size(), 5U);
}

INSTANTIATE_TEST_SUITE_P(Golden, QmpSchemaTest, testing::Values("qmp.txt", "qmp-restore.txt"),
                         [](const auto& one) {
                           std::string name = one.param;
                           return name == "qmp.txt" ? "All" : "Restore";
                         });

}  // namespace
}  // namespace gantry::vmm

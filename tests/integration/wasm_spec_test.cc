// SPDX-License-Identifier: Apache-2.0
//
// Odd config.json for guests: what is left out or blank is no error, what cannot be is refused by
// name, and the engine goes on.
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/harness/raw_guest.h"
#include "tests/harness/wasm_test.h"

namespace gantry::e2e {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class WasmSpec : public WasmTest {
 protected:
  /// Its end, or why there was none.
  static Result<uint64_t> LifeOf(RawGuest& guest) {
    const auto live = [&]() -> Result<uint64_t> {
      GANTRY_CHECK_OK(guest.Run());
      return guest.Wait();
    };
    Result<uint64_t> ended = live();
    const Status finished = guest.Finish();
    EXPECT_TRUE(finished) << finished.error_or(Error{}).message;
    return ended;
  }

  Result<uint64_t> LifeWith(const std::string& suffix, const Words& args, const Json& patch) {
    RawGuest guest(node(), Id(suffix), args, patch);
    return LifeOf(guest);
  }

  void ExpectRefused(const std::string& suffix, const Words& args, const Json& patch,
                     const Words& parts) {
    const auto ended = LifeWith(suffix, args, patch);
    ASSERT_FALSE(ended) << args.front();
    EXPECT_EQ(ended.error().code, Code::kFailedPrecondition) << ended.error().message;
    for (const std::string& part : parts) {
      EXPECT_THAT(ended.error().message, HasSubstr(part));
    }
  }

  /// A folder of the node's with tool.wasm in it, for a root.
  static std::string MakeRoot() {
    const std::string root = settings().root + "/bare";
    std::filesystem::create_directories(root);
    std::filesystem::copy_file(settings().guests + "/tool.wasm", root + "/tool.wasm",
                               std::filesystem::copy_options::overwrite_existing);
    return root;
  }

  static Json BindOf(const std::string& from, const std::string& to) {
    return {{"destination", to}, {"type", "bind"}, {"source", from}, {"options", {"rbind", "ro"}}};
  }

  static Json GuestsAnd(const Json& mount) {
    return {{"mounts", {BindOf(settings().guests, "/guests"), mount}}};
  }
};

/// Each alone, all, and those between.
TEST_F(WasmSpec, WithoutPartsOfItIsServedOrRefused) {
  const pid_t engine = node().Engine().pid;
  constexpr unsigned kAll = 7;
  for (unsigned without = 0; without <= kAll; ++without) {
    SCOPED_TRACE(without);
    const bool has_namespaces = (without & 2U) == 0;
    Json patch = Json::object();
    if ((without & 1U) != 0) {
      patch["annotations"] = nullptr;
    }
    if (!has_namespaces) {
      patch["linux"]["namespaces"] = nullptr;
    }
    if ((without & 4U) != 0) {
      patch["mounts"] = nullptr;
    }
    RawGuest guest(node(), Id("-" + std::to_string(without)), {"/tool.wasm", "exit", "7"}, patch);
    guest.SetRoot(MakeRoot());
    const auto ended = LifeOf(guest);
    if (has_namespaces) {
      ASSERT_TRUE(ended) << ended.error().message;
      EXPECT_EQ(*ended, 7U);
    } else {
      ASSERT_FALSE(ended);
      EXPECT_THAT(ended.error().message, HasSubstr("mount namespace"));
    }
  }
  EXPECT_EQ(node().Engine().pid, engine) << "the engine was lost on the way";
  std::filesystem::remove_all(settings().root + "/bare");
}

TEST_F(WasmSpec, WithBlankLimitsHasNone) {
  const Json rows[] = {
      {{"cpus", ""}, {"mems", ""}},
      {{"cpus", " "}, {"mems", " \n"}},
      {{"shares", 0}, {"quota", 0}, {"period", 0}},
      {{"cpus", " "}, {"mems", ""}, {"shares", nullptr}, {"quota", 0}},
      Json::object(),
  };
  int number = 0;
  for (const Json& cpu : rows) {
    SCOPED_TRACE(cpu.dump());
    Json patch;
    patch["linux"]["resources"]["cpu"] = cpu;
    RawGuest guest(node(), Id("-" + std::to_string(number++)), Tool({"sleep", "1000000"}), patch);
    const Status running = guest.Run();
    EXPECT_TRUE(running) << running.error_or(Error{}).message;
    const Status updated = guest.Update({{"cpu", cpu}});
    EXPECT_TRUE(updated) << updated.error_or(Error{}).message;
    EXPECT_TRUE(guest.Finish());
  }
}

TEST_F(WasmSpec, WithAMountOverTheModuleIsRefused) {
  const Json guests = BindOf(settings().guests, "/guests");
  const Json root = BindOf(settings().guests, "/");
  // Below the others the module is found, above them it is not.
  ExpectRefused("-below", Tool({"exit"}), {{"mounts", Json::array({root, guests})}},
                {"'/guests/tool.wasm'", "a mount at '/' covers it"});
  ExpectRefused("-above", Tool({"exit"}), {{"mounts", Json::array({guests, root})}},
                {"mount '/'", settings().guests});
  const Json file = BindOf(settings().guests + "/tool.wasm", "/guests/tool.wasm");
  ExpectRefused("-file", Tool({"exit"}), {{"mounts", Json::array({guests, file})}},
                {"a mount at '/guests/tool.wasm' covers it"});
}

/// With what it looked like, and what would do.
TEST_F(WasmSpec, OfWhatIsNoProgramIsRefused) {
  const std::string odd = settings().root + "/odd";
  std::filesystem::create_directories(odd);
  const std::pair<const char*, std::string> files[] = {
      {"text", "hello, world\n"},
      {"zeros", std::string(4096, '\0')},
      {"archive", "PK\3\4" + std::string(100, 'x')},
      {"empty", ""},
  };
  for (const auto& [name, content] : files) {
    WriteText(odd + "/" + name, content);
    ExpectRefused(std::string("-") + name, {std::string("/odd/") + name},
                  GuestsAnd(BindOf(odd, "/odd")),
                  {std::string("'/odd/") + name + "': it is ", "accepted are", "WebAssembly module",
                   "WebAssembly component", "ELF"});
  }
  std::filesystem::remove_all(odd);
}

/// The id of one that could not be made, or that ended at its gate, is free.
TEST_F(WasmSpec, OfAFailedStartLeavesNothing) {
  const Json hook = Json::array({{{"path", "/bin/false"}}});
  RawGuest guest(node(), Id(), Tool({"sleep", "1000000"}), {{"hooks", {{"poststart", hook}}}});
  ASSERT_TRUE(guest.Create());
  EXPECT_FALSE(guest.Start());
  constexpr uint64_t kStopped = 3;
  EXPECT_EQ(guest.Wait().value_or(0), 137U);
  EXPECT_EQ(guest.State()->status, kStopped);
  EXPECT_TRUE(guest.Delete());
  EXPECT_TRUE(guest.Finish());
  const auto again = LifeWith("", Tool({"exit", "9"}), Json::object());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, 9U);
}

}  // namespace
}  // namespace gantry::e2e

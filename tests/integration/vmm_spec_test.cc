// SPDX-License-Identifier: Apache-2.0
//
// Odd config.json for containers in machines: what is left out or blank is no error, what cannot be
// is refused by name, and nothing of it is left.
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/harness/raw_guest.h"
#include "tests/harness/vmm_test.h"

namespace gantry::e2e {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class VmmSpec : public VmmTest {
 protected:
  void SetUp() override {
    VmmTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    fs::create_directories(Root() + "/bin");
    fs::create_directories(Root() + "/proc");
    const Output copied = RunProgram({"sh", "-c", "cp $(command -v busybox) " + Root() + "/bin"});
    ASSERT_EQ(copied.status, 0) << copied.Text();
  }

  void TearDown() override {
    if (!IsSkipped()) {
      fs::remove_all(Root());
    }
    VmmTest::TearDown();
  }

  static std::string Root() { return settings().root + "/bare"; }

  static Words Shell(const std::string& script) { return {"/bin/busybox", "sh", "-c", script}; }

  /// With /proc, and no folder of the node's but its root.
  class Guest : public RawGuest {
   public:
    Guest(const std::string& id, const Words& args, const Json& patch)
        : RawGuest(node(), id, args, Completed(patch)) {
      SetRoot(Root());
    }

   private:
    static Json Completed(const Json& patch) {
      Json spec;
      spec["mounts"] = {{{"destination", "/proc"}, {"type", "proc"}, {"source", "proc"}}};
      for (const char* const kind : {"pid", "ipc", "uts", "mount", "network"}) {
        spec["linux"]["namespaces"].push_back({{"type", kind}});
      }
      // As merge_patch() has it, null takes away, and that is to be done to the whole.
      for (const auto& [key, value] : patch.items()) {
        if (key == "linux") {
          spec[key].update(value);
        } else {
          spec[key] = value;
        }
      }
      return spec;
    }
  };

  /// Its end, or why there was none.
  static Result<uint64_t> LifeOf(Guest& guest) {
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
    Guest guest(Id(suffix), args, patch);
    return LifeOf(guest);
  }

  static Json WithoutMounts() { return {{"mounts", nullptr}}; }
};

// K17: each alone, and all.
TEST_F(VmmSpec, WithoutPartsOfItIsServedOrRefused) {
  const pid_t engine = node().Engine().pid;
  Json all = WithoutMounts();
  all["annotations"] = nullptr;
  Json no_namespaces = WithoutMounts();
  no_namespaces["linux"]["namespaces"] = nullptr;
  const Json rows[] = {{{"annotations", nullptr}}, WithoutMounts(), all};
  int number = 0;
  for (const Json& patch : rows) {
    SCOPED_TRACE(patch.dump());
    const auto ended = LifeWith("-" + std::to_string(number++), Shell("exit 7"), patch);
    EXPECT_EQ(ended.value_or(0), 7U) << ended.error_or(Error{}).message;
  }
  const auto refused = LifeWith("-node", Shell("exit 7"), no_namespaces);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("the node's network"));
  if (engine != 0) {
    EXPECT_EQ(node().Engine().pid, engine) << "the engine was lost on the way";
  }
}

// U9.
TEST_F(VmmSpec, WithBlankLimitsHasNone) {
  const Json cpus[] = {
      {{"cpus", ""}, {"mems", ""}},
      {{"cpus", " "}, {"mems", " \n"}},
      {{"shares", 0}, {"quota", 0}, {"period", 0}},
      Json::object(),
  };
  Json patch;
  patch["linux"]["resources"]["cpu"] = cpus[1];
  Guest guest(Id(), Shell("exec sleep 100000"), patch);
  const Status running = guest.Run();
  EXPECT_TRUE(running) << running.error_or(Error{}).message;
  for (const Json& cpu : cpus) {
    const Status updated = guest.Update({{"cpu", cpu}});
    EXPECT_TRUE(updated) << cpu << updated.error_or(Error{}).message;
  }
  EXPECT_TRUE(guest.Finish());
}

// K18: what could not be started is stopped, can be deleted, and its id is free.
TEST_F(VmmSpec, OfAFailedStartLeavesNothing) {
  const Json hook = Json::array({{{"path", "/bin/false"}}});
  Guest guest(Id(), Shell("exec sleep 100000"), {{"hooks", {{"poststart", hook}}}});
  ASSERT_TRUE(guest.Create());
  EXPECT_FALSE(guest.Start());
  constexpr uint64_t kStopped = 3;
  EXPECT_EQ(guest.Wait().value_or(0), 137U);
  EXPECT_EQ(guest.State()->status, kStopped);
  EXPECT_TRUE(guest.Delete());
  EXPECT_TRUE(guest.Finish());
  ExpectNoMachine(node());
  const auto again = LifeWith("", Shell("exit 9"), Json::object());
  EXPECT_EQ(again.value_or(0), 9U) << again.error_or(Error{}).message;
}

// U3.
TEST_F(VmmSpec, WithWhatACrashHasLeftInItsBundleIsServed) {
  Guest guest(Id(), Shell("exit 8"), Json::object());
  for (const char* const name : {"/container.tmp", "/.tmp", "/sandbox.tmp", "/foreign"}) {
    WriteText(guest.bundle() + name, "half a rec");
  }
  const auto ended = LifeOf(guest);
  EXPECT_EQ(ended.value_or(0), 8U) << ended.error_or(Error{}).message;
}

}  // namespace
}  // namespace gantry::e2e

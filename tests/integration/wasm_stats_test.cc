// SPDX-License-Identifier: Apache-2.0
//
// Statistics of guests, and the cgroup that they are of: the one that config.json names.
#include <algorithm>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/harness/raw_guest.h"
#include "tests/harness/wasm_test.h"

namespace gantry::e2e {
namespace {

using Json = nlohmann::json;

class WasmStats : public WasmTest {
 protected:
  static constexpr uint64_t kSecond = 1'000'000'000;
  static constexpr uint64_t kMiB = 1 << 20;

  static Json Metrics(const std::string& id) {
    const Output metrics = Ctr({"tasks", "metrics", "--format", "json", id});
    EXPECT_EQ(metrics.status, 0) << metrics.Text();
    return Json::parse(metrics.out, nullptr, false);
  }

  static uint64_t Number(const Json& metrics, const char* pointer) {
    return metrics.value(Json::json_pointer(pointer), uint64_t{0});
  }

  /// In ns, by either version of cgroups.
  static uint64_t CpuOf(const std::string& id) {
    const Json metrics = Metrics(id);
    return std::max(Number(metrics, "/cpu/usage/total"), 1000 * Number(metrics, "/cpu/usage_usec"));
  }

  static uint64_t MemoryOf(const std::string& id) {
    const Json memory = Metrics(id).value("memory", Json::object());
    return memory.contains("usage") && memory["usage"].is_object() ? Number(memory, "/usage/usage")
                                                                   : Number(memory, "/usage");
  }

  static bool IsInCgroup(pid_t pid, const std::string& id) {
    const auto found = ProcessesInCgroup("/" + settings().ns + "/" + id);
    return std::ranges::contains(found, pid, &HostProcess::pid);
  }
};

TEST_F(WasmStats, HaveTheTimeOfAGuestThatComputes) {
  const std::string id = Id();
  StartDetached(id, Tool({"spin"}), WithGuests({}));
  EXPECT_TRUE(Eventually([&] { return CpuOf(id) >= kSecond; })) << Metrics(id);
  EXPECT_EQ(Number(Metrics(id), "/pids/current"), 1U) << "one thread";
  Remove(id);
}

TEST_F(WasmStats, HaveTheMemoryThatItHolds) {
  const std::string id = Id();
  const std::string small = Id("-small");
  StartDetached(id, {Guest("steps"), "/", "0", "hold"}, WithGuests({}));
  StartDetached(small, Tool({"sleep", "1000000"}), WithGuests({}));
  EXPECT_TRUE(Eventually([&] { return MemoryOf(id) >= 20 * kMiB; })) << Metrics(id);
  EXPECT_LT(MemoryOf(small), 20 * kMiB) << Metrics(small);
  EXPECT_GT(MemoryOf(small), 0U) << Metrics(small);
  Remove(id);
  Remove(small);
}

/// Before its first instruction, too.
TEST_F(WasmStats, AreOfTheCgroupOfItsSpec) {
  RawGuest guest(node(), Id(), Tool({"sleep", "1000000"}));
  ASSERT_TRUE(guest.Create());
  const pid_t pid = guest.State()->pid;
  ASSERT_GT(pid, 0);
  EXPECT_TRUE(IsInCgroup(pid, Id()));
  ASSERT_TRUE(guest.Start());
  EXPECT_TRUE(IsInCgroup(pid, Id()));
  ASSERT_TRUE(guest.Exec("x1", Tool({"exit", "3"})));
  EXPECT_TRUE(guest.Finish());
}

}  // namespace
}  // namespace gantry::e2e

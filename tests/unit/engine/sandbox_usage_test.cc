// SPDX-License-Identifier: Apache-2.0
#include "core/engine/sandbox_usage.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/cgroup/fake_cgroupfs.h"

namespace gantry::engine {
namespace {

class MetricsSandboxUsage : public testing::Test {
 protected:
  MetricsSandboxUsage() {
    files_.Put("cgroup.controllers", "cpu memory\n");
    hierarchy_ = *cgroup::CgroupHierarchy::At(files_.path());
  }

  void Put(const std::string& name, int cpu_us, int memory) {
    files_.Put(name + "/cgroup.controllers", "cpu memory\n");
    files_.Put(name + "/cpu.stat", "usage_usec " + std::to_string(cpu_us) + "\nuser_usec 1\n");
    files_.Put(name + "/memory.current", std::to_string(memory) + "\n");
  }

  UsedBy Sandbox(const std::string& id, const std::vector<std::string>& cgroups) {
    UsedBy one{{.ns = "n", .id = id, .backend = "b"}, {}};
    for (const std::string& name : cgroups) {
      one.cgroups.push_back(*cgroup::Cgroup::Named(hierarchy_, "/" + name));
    }
    return one;
  }

  os::FakeCgroupFs files_;
  cgroup::CgroupHierarchy hierarchy_;
};

TEST_F(MetricsSandboxUsage, AddsUpASandboxesCgroups) {
  Put("a", 100, 4096);
  Put("b", 20, 8192);
  SandboxUsage usage(std::chrono::hours(1));
  const auto rows = usage.Read({Sandbox("s", {"a", "b"}), Sandbox("t", {"b"})});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].id, "s");
  EXPECT_EQ(rows[0].cpu_us, 120U);
  EXPECT_EQ(rows[0].memory_bytes, 12288U);
  EXPECT_EQ(rows[1].cpu_us, 20U);
}

TEST_F(MetricsSandboxUsage, SaysNothingOfWhatIsNotKnown) {
  SandboxUsage usage(std::chrono::hours(1));
  UsedBy none = Sandbox("none", {});
  none.cgroups.emplace_back();
  const auto rows = usage.Read({Sandbox("gone", {"gone"}), std::move(none)});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_FALSE(rows[0].cpu_us || rows[0].memory_bytes || rows[1].cpu_us || rows[1].memory_bytes);
}

/// Goes on by a second whenever it is looked at.
class BusyClock final : public async::Clock {
 public:
  async::TimePoint Now() const override { return now_ += std::chrono::seconds(1); }

  std::optional<async::Duration> Until(async::TimePoint) const override { return std::nullopt; }

 private:
  mutable async::TimePoint now_{};
};

TEST_F(MetricsSandboxUsage, ReadsInTurnsWhatIsTooMuchForOneTime) {
  const BusyClock clock;
  // It is looked at before each.
  SandboxUsage usage(std::chrono::seconds(2), clock);
  Put("a", 1, 1);
  std::vector<metrics::SandboxRow> rows;
  for (int call = 1; call <= 3; ++call) {
    rows = usage.Read({Sandbox("s", {"a"}), Sandbox("t", {"a"}), Sandbox("u", {"a"})});
    int known = 0;
    for (const metrics::SandboxRow& row : rows) {
      known += row.memory_bytes ? 1 : 0;
    }
    EXPECT_EQ(known, call);
  }
  // From now on it is the turn of the one that was read first; the others are as they were.
  Put("a", 2, 2);
  rows = usage.Read({Sandbox("s", {"a"}), Sandbox("t", {"a"}), Sandbox("u", {"a"})});
  EXPECT_EQ(rows[0].cpu_us, 2U);
  EXPECT_EQ(rows[1].cpu_us, 1U);
  EXPECT_EQ(rows[2].cpu_us, 1U);
}

TEST_F(MetricsSandboxUsage, ForgetsSandboxesThatAreGone) {
  Put("a", 100, 4096);
  SandboxUsage usage(std::chrono::hours(1));
  usage.Read({Sandbox("s", {"a"})});
  EXPECT_EQ(usage.known(), 1U);
  usage.Read({});
  EXPECT_EQ(usage.known(), 0U);
}

}  // namespace
}  // namespace gantry::engine

// SPDX-License-Identifier: Apache-2.0
//
// What systemd is asked for over D-Bus, and what is said where it refuses or does not answer.
#include "core/os/systemd_bus.h"

#include <chrono>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/os/fake_systemd.h"

namespace gantry::os {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kUnit[] = "cri-containerd-c1.scope";

class SystemdBusTest : public testing::Test {
 protected:
  void SetUp() override {
    systemd_ = FakeSystemd::Begin();
    if (!systemd_) {
      GTEST_SKIP() << "the machine has no libsystemd.so.0";
    }
  }

  static Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

  /// Of what nobody answers.
  static Deadline AtOnce() {
    return std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  }

  static Status Start(Deadline by = Soon()) {
    return StartTransientUnit(kUnit, {{.name = "Slice", .value = std::string("a.slice")}}, by);
  }

  static void ExpectSilence(const Status& status) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kUnavailable);
    EXPECT_THAT(status.error().message, HasSubstr("systemd"));
  }

  std::unique_ptr<FakeSystemd> systemd_;
};

TEST_F(SystemdBusTest, StartsAUnitWithPropertiesOfEachKind) {
  const Status started = StartTransientUnit(
      kUnit,
      {{.name = "Slice", .value = std::string("a.slice")},
       {.name = "Delegate", .value = true},
       {.name = "MemoryMax", .value = uint64_t{4096}},
       {.name = "TasksMax", .value = std::numeric_limits<uint64_t>::max()},
       {.name = "PIDs", .value = UnitPids{7, 70000}},
       {.name = "AllowedCPUs", .value = ByteMask{1, 255}},
       {.name = "DeviceAllow", .value = DeviceList{{"/dev/char/1:3", "rwm"}, {"char-*", "m"}}},
       {.name = "Nothing", .value = DeviceList{}}},
      Soon());
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_THAT(systemd_->PropertiesOf(kUnit),
              ElementsAre("AllowedCPUs=1 255", "Delegate=yes",
                          "DeviceAllow=/dev/char/1:3 rwm,char-* m", "MemoryMax=4096",
                          "Nothing=", "PIDs=7 70000", "Slice=a.slice", "TasksMax=infinity"));
  EXPECT_EQ(*ControlGroupOf(kUnit), "/a.slice/cri-containerd-c1.scope");
}

/// The fake tells of the end of each second job before it has named the job.
TEST_F(SystemdBusTest, WaitsForItsOwnJobsEndWheneverThatIsTold) {
  for (int i = 0; i < 4; ++i) {
    const Status started = Start();
    ASSERT_TRUE(started) << started.error().message;
    const Status stopped = StopUnit(kUnit, Soon());
    ASSERT_TRUE(stopped) << stopped.error().message;
    EXPECT_FALSE(systemd_->Has(kUnit));
    ASSERT_TRUE(StopUnit("other.scope", Soon())) << "it is not there";
    ASSERT_TRUE(i % 2 != 0 || (Start() && StopUnit(kUnit, Soon())));
  }
}

TEST_F(SystemdBusTest, SetsProperties) {
  systemd_->Put(kUnit, "/a.slice/x");
  ASSERT_TRUE(SetUnitProperties(kUnit, {{.name = "CPUWeight", .value = uint64_t{39}}}));
  EXPECT_THAT(systemd_->PropertiesOf(kUnit), ElementsAre("CPUWeight=39"));
}

TEST_F(SystemdBusTest, ForgetsAUnitThatHasFailed) {
  systemd_->Put(kUnit, "");
  ASSERT_TRUE(StopUnit(kUnit, Soon()));
  EXPECT_FALSE(systemd_->Has(kUnit));
  EXPECT_THAT(systemd_->Calls(),
              ElementsAre("stop cri-containerd-c1.scope", "forget cri-containerd-c1.scope"));
}

TEST_F(SystemdBusTest, SaysThatANameIsTakenAndWhatIsNotThere) {
  systemd_->Put(kUnit, "/a.slice/x");
  EXPECT_EQ(Start().error().code, Code::kAlreadyExists);
  EXPECT_EQ(ControlGroupOf("other.scope").error().code, Code::kNotFound);
  EXPECT_EQ(SetUnitProperties("other.scope", {}).error().code, Code::kNotFound);
}

TEST_F(SystemdBusTest, PassesOnWhatSystemdRefuses) {
  systemd_->Refuse("StartTransientUnit", "org.freedesktop.DBus.Error.InvalidArgs");
  const Status invalid = Start();
  ASSERT_FALSE(invalid);
  EXPECT_EQ(invalid.error().code, Code::kInvalidArgument);
  EXPECT_THAT(invalid.error().message, AllOf(HasSubstr("start 'cri-containerd-c1.scope'"),
                                             HasSubstr("systemd"), HasSubstr("said by the fake")));
  systemd_->Refuse("StartTransientUnit", "org.freedesktop.DBus.Error.AccessDenied");
  EXPECT_EQ(Start().error().code, Code::kUnavailable);
}

TEST_F(SystemdBusTest, SaysHowAJobEndsThatDoesNotEndWell) {
  systemd_->EndJobsWith("failed");
  const Status failed = Start();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(failed.error().message, AllOf(HasSubstr("systemd says 'failed'"),
                                            HasSubstr("journalctl -u 'cri-containerd-c1.scope'")));
}

TEST_F(SystemdBusTest, WaitsForNobodyWhoSaysNoHello) {
  systemd_->BeSilentAt("");
  ExpectSilence(Start(AtOnce()));
  ExpectSilence(StopUnit(kUnit, AtOnce()));
  ExpectSilence(SetUnitProperties(kUnit, {}, AtOnce()));
}

TEST_F(SystemdBusTest, WaitsForNoAnswerBeyondItsTime) {
  systemd_->BeSilentAt("StartTransientUnit");
  systemd_->BeSilentAt("GetUnit");
  ExpectSilence(Start(AtOnce()));
  const auto found = ControlGroupOf(kUnit, AtOnce());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kUnavailable);
  EXPECT_THAT(systemd_->Calls(), IsEmpty());
}

TEST_F(SystemdBusTest, WaitsForNoJobBeyondItsTime) {
  systemd_->EndJobsWith("");
  ExpectSilence(Start(AtOnce()));
}

}  // namespace
}  // namespace gantry::os

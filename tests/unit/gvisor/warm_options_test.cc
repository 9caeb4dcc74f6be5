// SPDX-License-Identifier: Apache-2.0
//
// Which handlers may have sandboxes booted beforehand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/gvisor/backend.h"
#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string Complaint(const std::string& options) {
  GvisorBackend backend{Options()};
  const Status checked = backend.CheckOptions(options);
  return checked ? "" : checked.error().message;
}

TEST(WarmOptions, AreBounded) {
  EXPECT_EQ(Complaint(R"({"warm":0})"), "");
  EXPECT_EQ(Complaint(R"({"warm":64})"), "");
  EXPECT_EQ(Complaint(R"({"warm":65})"), "check option 'warm': 65 is not from 0 to 64");
  EXPECT_EQ(Complaint(R"({"warm":-1})"), "check option 'warm': -1 is not from 0 to 64");
  EXPECT_EQ(Complaint(R"({"warm":"2"})"), "check option 'warm': must be a whole number, is string");
}

TEST(WarmOptions, AreNotForTheHostsNetwork) {
  EXPECT_THAT(Complaint(R"({"warm":1,"runsc_config":{"network":"host"}})"),
              HasSubstr("check option 'warm': with runsc_config.network 'host'"));
  EXPECT_EQ(Complaint(R"({"warm":0,"runsc_config":{"network":"host"}})"), "");
  EXPECT_EQ(Complaint(R"({"warm":1,"runsc_config":{"network":"none"}})"), "");
}

TEST(WarmOptions, OfNobodyStartNothing) {
  FakeSandboxContext context;
  GvisorBackend backend{Options()};
  backend.Attach(context, {{"a", "{}"},
                           {"b", R"({"warm":0})"},
                           {"c", R"({"warm":1,"unknown":1})"},
                           {"d", R"({"warm":1,"runsc_config":{"network":"host"}})"}});
  EXPECT_THAT(backend.Counts(), IsEmpty());
  backend.Leave();
  EXPECT_THAT(context.spawned, IsEmpty());
}

}  // namespace
}  // namespace gantry::gvisor

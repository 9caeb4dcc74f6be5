// SPDX-License-Identifier: Apache-2.0
//
// What gantry makes of runsc's flags, beside handing them on.
#include "plugins/gvisor/launch/flags.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gantry::gvisor {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

Flags MadeFlags(const std::map<std::string, std::string>& given) {
  auto flags = MakeFlags(given, {});
  EXPECT_TRUE(flags) << flags.error().message;
  return std::move(flags).value_or(Flags());
}

Json ConfOf(const std::map<std::string, std::string>& given) {
  return Json::parse(MadeFlags(given).ConfJson());
}

TEST(GvisorFlags, OfAFurtherContainerAreThoseOfItsSentry) {
  EXPECT_EQ(ConfOf({{"host-fifo", "open"}})["HostFifo"], 1);
  EXPECT_EQ(ConfOf({{"character-device-policy", "prefer-emulated"}})["CharacterDevicePolicy"], 1);
  EXPECT_EQ(ConfOf({{"character-device-policy", "passthrough"}})["CharacterDevicePolicy"], 2);
  EXPECT_EQ(ConfOf({{"in-sandbox-cgroup", "v2"}})["InSandboxCgroup"], 1);
}

TEST(GvisorFlags, ThatASentryMayNotKnowAreLeftOutWhereTheySayTheUsual) {
  for (const std::map<std::string, std::string>& given :
       {std::map<std::string, std::string>(),
        {{"host-fifo", "none"},
         {"character-device-policy", "emulated-only"},
         {"in-sandbox-cgroup", "v1"}}}) {
    const Json conf = ConfOf(given);
    for (const char* field : {"HostFifo", "CharacterDevicePolicy", "InSandboxCgroup"}) {
      EXPECT_FALSE(conf.contains(field)) << field;
    }
  }
}

TEST(GvisorFlags, ThatRunscAloneCouldServeAreRefused) {
  for (const char* name : {"reproduce-nat", "reproduce-nftables", "nvproxy"}) {
    const auto refused = MakeFlags({{name, "true"}}, {});
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_THAT(refused.error().message, HasSubstr(std::string("'runsc_config.") + name + "'"));
    EXPECT_TRUE(MakeFlags({{name, "false"}}, {})) << name;
  }
}

TEST(GvisorFlags, OfTheNetworkReachTheSentry) {
  const NetworkOptions options = MadeFlags({{"qdisc", "tbf"},
                                            {"qdisc-tbf-rate", "1000000"},
                                            {"qdisc-tbf-burst", "100000"},
                                            {"network-processors-per-channel", "2"}})
                                     .NetworkFlags();
  EXPECT_EQ(options.qdisc, QueueingDiscipline::kTbf);
  EXPECT_EQ(options.tbf_rate, 1'000'000U);
  EXPECT_EQ(options.tbf_burst, 100'000U);
  EXPECT_EQ(options.processors_per_channel, 2U);
  net::PodNetwork network;
  network.links.push_back({});
  network.links.back().name = "eth0";
  const Json link = Json::parse(NetworkArgs(network, options))["FDBasedLinks"][0];
  EXPECT_EQ(link["QDisc"], 2);
  EXPECT_EQ(link["TBFRate"], 1'000'000);
  EXPECT_EQ(link["TBFBurst"], 100'000);
  EXPECT_EQ(link["ProcessorsPerChannel"], 2);
  EXPECT_EQ(MadeFlags({{"qdisc", "none"}}).NetworkFlags().qdisc, QueueingDiscipline::kNone);
}

TEST(GvisorFlags, ThatAreNumbersAreNumbers) {
  for (const char* name : {"qdisc-tbf-rate", "qdisc-tbf-burst", "network-processors-per-channel"}) {
    EXPECT_THAT(MakeFlags({{name, "fast"}}, {}).error().message, HasSubstr(name));
  }
}

constexpr const char* kFast = "dev.gvisor.bundle.experimental-high-performance";

TEST(GvisorFlags, OfABundleAreSetByItsName) {
  const auto flags = MakeFlags({}, {{kFast, "true"}});
  ASSERT_TRUE(flags) << flags.error().message;
  EXPECT_THAT(flags->all, testing::UnorderedElementsAre(testing::Pair("directfs", "true"),
                                                        testing::Pair("overlay2", "root:self"),
                                                        testing::Pair("platform", "systrap")));
  EXPECT_THAT(flags->unknown_bundles, testing::IsEmpty());
}

TEST(GvisorFlags, OfABundleMustBeAllowedWhereTheHandlerHasOthers) {
  const auto refused = MakeFlags({{"platform", "kvm"}}, {{kFast, "true"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_THAT(refused.error().message, testing::AllOf(HasSubstr(kFast), HasSubstr("'platform'"),
                                                      HasSubstr("allow-flag-override")));
  EXPECT_TRUE(MakeFlags({{"platform", "systrap"}}, {{kFast, "true"}}));
  const auto allowed =
      MakeFlags({{"platform", "kvm"}, {"allow-flag-override", "true"}}, {{kFast, "true"}});
  ASSERT_TRUE(allowed) << allowed.error().message;
  EXPECT_EQ(allowed->platform, "systrap");
}

TEST(GvisorFlags, OfTheirOwnAnnotationComeBeforeABundles) {
  const auto flags = MakeFlags({{"allow-flag-override", "true"}},
                               {{kFast, "true"}, {"dev.gvisor.flag.overlay2", "none"}});
  ASSERT_TRUE(flags) << flags.error().message;
  EXPECT_EQ(flags->overlay.medium, Overlay::Medium::kNone);
}

TEST(GvisorFlags, OfABundleThatIsNoneAreSaid) {
  const auto unknown = MakeFlags({}, {{"dev.gvisor.bundle.no-such", "true"}});
  ASSERT_TRUE(unknown) << unknown.error().message;
  EXPECT_THAT(unknown->unknown_bundles, testing::ElementsAre("no-such"));
  for (const char* name : {kFast, "dev.gvisor.bundle.no-such"}) {
    const auto refused = MakeFlags({}, {{name, "1"}});
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_THAT(refused.error().message, testing::AllOf(HasSubstr(name), HasSubstr("'1'")));
  }
}

}  // namespace
}  // namespace gantry::gvisor

// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/protocol/greeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/vmm/protocol/envelope.h"

namespace gantry::vmm::protocol {
namespace {

using testing::HasSubstr;

Hello Of(uint32_t first, uint32_t last) {
  Hello hello;
  hello.first_version = first;
  hello.last_version = last;
  return hello;
}

TEST(ChooseVersion, IsTheHighestThatBothSpeak) {
  EXPECT_EQ(*ChooseVersion(Of(kFirstVersion, kLastVersion)), kLastVersion);
  EXPECT_EQ(*ChooseVersion(Of(kFirstVersion, kLastVersion + 5)), kLastVersion);
}

TEST(ChooseVersion, SaysWhichOfTheTwoIsOlder) {
  const auto newer = ChooseVersion(Of(kLastVersion + 1, kLastVersion + 2));
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(newer.error().message, HasSubstr("(option 'initrd') is newer than gantry"));
}

TEST(ChooseVersion, RefusesWhatIsNoRange) {
  for (const Hello& hello : {Of(0, 1), Of(3, 2), Of(0, 0)}) {
    const auto chosen = ChooseVersion(hello);
    ASSERT_FALSE(chosen);
    EXPECT_THAT(chosen.error().message, HasSubstr("which is no range"));
  }
}

}  // namespace
}  // namespace gantry::vmm::protocol

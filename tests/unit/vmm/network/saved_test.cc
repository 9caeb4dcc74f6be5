// SPDX-License-Identifier: Apache-2.0
//
// A network as text, and that of a sandbox that has none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/vmm/network/network.h"

namespace gantry::vmm {
namespace {

using testing::IsEmpty;

TEST(VmmNetworkOfNone, IsTheLoopbackAlone) {
  auto network = Network::Connect({});
  ASSERT_TRUE(network) << network.error().message;
  EXPECT_THAT(network->TakeNics(), IsEmpty());
  EXPECT_THAT(*network->Interfaces(), IsEmpty());
  auto again = Network::Recover(network->Save());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->Disconnect());
  EXPECT_EQ(again->netns(), "");
}

TEST(VmmNetworkOfNone, WhatIsNoSavedOneIsRefused) {
  for (const char* text :
       {"", "[]", "{}", R"({"netns":1,"inode":1,"pairs":[]})",
        R"({"netns":"","inode":1,"pairs":[{}]})", R"({"netns":"","inode":-1,"pairs":{"a":1}})"}) {
    EXPECT_EQ(Network::Recover(text).error().code, Code::kDataLoss) << text;
  }
}

}  // namespace
}  // namespace gantry::vmm

// SPDX-License-Identifier: Apache-2.0
//
// What the backend promises of its containers.
#include <gmock/gmock.h>

#include "plugins/gvisor/backend.h"

namespace gantry::gvisor {
namespace {

TEST(GvisorFeatures, PromiseMappedMountsAndNoRecursiveReadOnlyOnes) {
  GvisorBackend backend{Options()};
  const auto features = backend.Features({});
  ASSERT_TRUE(features) << features.error().message;
  EXPECT_THAT(*features, testing::HasSubstr(R"("mountExtensions":{"idmap":{"enabled":true}})"));
  EXPECT_THAT(*features, testing::Not(testing::HasSubstr("rro")));
}

}  // namespace
}  // namespace gantry::gvisor

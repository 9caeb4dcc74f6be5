// SPDX-License-Identifier: Apache-2.0
#include "packaging/kubernetes/node_api/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::node_api {
namespace {

using testing::ElementsAre;

TEST(LabelPatch, SetsAndRemoves) {
  const auto patch = LabelPatch({"io.gantry/runc=true", "io.gantry/vmm-", "a="});
  ASSERT_TRUE(patch.has_value()) << patch.error().message;
  EXPECT_EQ(*patch,
            R"({"metadata":{"labels":{"a":"","io.gantry/runc":"true","io.gantry/vmm":null}}})");
}

TEST(LabelPatch, RefusesWhatIsNoLabel) {
  for (const char* const word : {"", "-", "=x", "key", "a b=c", "a=b\"", "a=b/c", "a\n-"}) {
    const auto patch = LabelPatch({word});
    ASSERT_FALSE(patch.has_value()) << word;
    EXPECT_EQ(patch.error().code, Code::kInvalidArgument);
  }
}

constexpr char kList[] = R"({"kind":"PodList","metadata":{"continue":"next page"},"items":[
  {"metadata":{"namespace":"a","name":"plain"},"status":{"phase":"Running"}},
  {"metadata":{"namespace":"a","name":"waits"},"status":{"phase":"Pending"}},
  {"metadata":{"namespace":"a","name":"of-a-set",
               "ownerReferences":[{"kind":"ReplicaSet","name":"x"}]},"status":{"phase":"Running"}},
  {"metadata":{"namespace":"a","name":"done"},"status":{"phase":"Succeeded"}},
  {"metadata":{"namespace":"a","name":"failed"},"status":{"phase":"Failed"}},
  {"metadata":{"namespace":"a","name":"daemon",
               "ownerReferences":[{"kind":"DaemonSet","name":"y"}]},"status":{"phase":"Running"}},
  {"metadata":{"namespace":"a","name":"static",
               "annotations":{"kubernetes.io/config.mirror":"1"}},"status":{"phase":"Running"}}]})";

TEST(Pods, AreThoseThatADrainedNodeLoses) {
  const auto page = ReadPods(kList);
  ASSERT_TRUE(page.has_value()) << page.error().message;
  EXPECT_THAT(page->names, ElementsAre("a/plain", "a/waits", "a/of-a-set"));
  EXPECT_EQ(page->next, "next page");
}

TEST(Pods, OfOddShapesDoNotEndTheProgram) {
  EXPECT_FALSE(ReadPods("{").has_value());
  EXPECT_FALSE(ReadPods("[]").has_value());
  EXPECT_FALSE(ReadPods(R"({"items":{}})").has_value());
  const auto page = ReadPods(
      R"({"items":[1,null,{"metadata":3,"status":[]},{"metadata":{"ownerReferences":[1]}}]})");
  ASSERT_TRUE(page.has_value());
  // What is not understood counts: then nothing is restarted.
  EXPECT_EQ(page->names.size(), 4U);
}

}  // namespace
}  // namespace gantry::node_api

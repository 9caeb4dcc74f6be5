// SPDX-License-Identifier: Apache-2.0
//
// Ids that no client should send: refused, with nothing made of them.
#include <filesystem>

#include "tests/contract/harness/contract_test.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

const std::vector<std::string> kBadIds = {"",
                                          "a/b",
                                          "/",
                                          "../escape",
                                          "..",
                                          ".",
                                          "a..b",
                                          "-a",
                                          "a b",
                                          "a:b",
                                          "a\nb",
                                          "\xc3\xa4",
                                          std::string("a\0b", 3),
                                          std::string(77, 'a'),
                                          std::string(10000, 'x')};

class Ids : public ContractTest {};

TEST_P(Ids, OfContainersAreChecked) {
  Box& box = Announced();
  for (const std::string& id : kBadIds) {
    pb::CreateTaskRequest request = box.CreateRequest();
    request.set_id(id);
    const auto created = box.client().Call<pb::CreateTaskResponse>("Create", request);
    EXPECT_CODE(created, kInvalidArgument) << id.substr(0, 20);
    EXPECT_LT(MessageOf(created).size(), 1000U);
  }
  EXPECT_TRUE(e2e::MountsBelow(box.bundle()).empty());
  EXPECT_EQ(e2e::ListFolder(box.bundle()), (std::vector<std::string>{"config.json", "rootfs"}));
  EXPECT_OK(box.Create());
}

TEST_P(Ids, OfExecsAreChecked) {
  Box& box = Running();
  for (const std::string& id : kBadIds) {
    const Status made = box.Exec(id, {"true"});
    EXPECT_CODE(made, kInvalidArgument) << id.substr(0, 20);
    EXPECT_LT(MessageOf(made).size(), 1000U);
  }
  EXPECT_OK(box.Exec(std::string(76, 'a'), {"true"}));
}

TEST_P(Ids, ThatNobodyHasAreNotFound) {
  Box& box = Running();
  for (const std::string& id : kBadIds) {
    pb::StateRequest state;
    state.set_id(id);
    EXPECT_CODE(box.client().Call<pb::StateResponse>("State", state), kNotFound);
    pb::DeleteRequest removal;
    removal.set_id(id);
    EXPECT_CODE(box.client().Call<pb::DeleteResponse>("Delete", removal), kNotFound);
    if (!id.empty()) {
      EXPECT_CODE(box.State(id), kNotFound);
      EXPECT_CODE(box.Kill(9, id), kNotFound);
    }
  }
}

TEST_P(Ids, OfAnotherContainerAreNotFoundOnThisSocket) {
  Box& first = Running({}, "a");
  Box& second = Announced({}, "b");
  // Ids are looked up among the instances of the same containerd and namespace,
  // whichever socket they come on: a pod's containers share one. But who was
  // never created is not there on any.
  pb::StateRequest request;
  request.set_id(second.id());
  EXPECT_CODE(first.client().Call<pb::StateResponse>("State", request), kNotFound);
}

TEST_P(Ids, AreFreeAgainAfterDelete) {
  for (int round = 0; round < 3; ++round) {
    Box& box = Running({.args = {"true"}});
    EXPECT_OK(box.Wait());
    EXPECT_OK(box.Delete());
    Finish(box);
  }
}

TEST_P(Ids, AreFreeAgainForCreateWithoutANewStart) {
  Box& box = Running({.args = {"true"}});
  EXPECT_OK(box.Wait());
  EXPECT_OK(box.Delete());
  EXPECT_CODE(box.State(), kNotFound);
}

INSTANTIATE_CONTRACT(Ids);

}  // namespace
}  // namespace gantry::contract

// SPDX-License-Identifier: Apache-2.0
//
// The fixture of tests about pods: they and their containers are ended after it.
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <utility>

#include "tests/contract/harness/contract_test.h"
#include "tests/contract/harness/pod_box.h"

namespace gantry::contract {

class PodContract : public ContractTest {
 protected:
  void TearDown() override {
    for (Box& box : members_) {
      EXPECT_OK(box.Finish()) << box.id();
    }
    for (PodBox& pod : pods_) {
      EXPECT_OK(pod.Finish()) << pod.id();
    }
    ContractTest::TearDown();
  }

  PodBox& AnnouncedPod(std::string_view suffix = "") {
    PodBox& pod = pods_.emplace_back(node(), Id("-pod" + std::string(suffix)), backend());
    EXPECT_TRUE(pod.Announce());
    return pod;
  }

  PodBox& RunningPod(std::string_view suffix = "") {
    PodBox& pod = AnnouncedPod(suffix);
    EXPECT_OK(pod.Create());
    EXPECT_OK(pod.Start());
    return pod;
  }

  /// A container in the pod, as containerd 2.x makes it: without a shim of its own.
  Box& Member(const PodBox& pod, BoxOptions options = {}, std::string_view suffix = "") {
    options.group = pod.id();
    Box& box = members_.emplace_back(node(), Id("-in" + std::string(suffix)), backend(),
                                     std::move(options));
    box.Join(pod.client().path());
    return box;
  }

 private:
  std::list<PodBox> pods_;
  std::list<Box> members_;
};

}  // namespace gantry::contract

// SPDX-License-Identifier: Apache-2.0
#include "core/events/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/memfd.h>

#include "core/log/log.h"

namespace gantry::events {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string kAddress = "/run/containerd.ttrpc";
const std::string kOther = "/run/docker.ttrpc";

Subject Of(std::string_view container, const std::string& address = kAddress) {
  return {address, *Namespace::Parse("k8s.io"), *ContainerId::Parse(container)};
}

constexpr ExitStatus kEnded{0, 1};

class OutboxTest : public testing::Test {
 protected:
  OutboxTest() {
    log::SetSinkForTest([](std::string_view) {});
  }

  ~OutboxTest() override { log::SetSinkForTest({}); }

  void SetUp() override {
    auto memfd = CreateMemfd("outbox-test");
    ASSERT_TRUE(memfd) << memfd.error().message;
    memfd_ = std::move(*memfd);
    Open();
  }

  /// A new engine.
  void Open(OutboxLimits limits = {}) {
    auto outbox = Outbox::Open(*memfd_.Duplicate(), limits);
    ASSERT_TRUE(outbox) << outbox.error().message;
    outbox_ = std::move(*outbox);
  }

  void Add(Event event) {
    const Status status = outbox_->Add(std::move(event));
    EXPECT_TRUE(status) << status.error().message;
  }

  /// Takes and publishes all there is: `container topic` of each.
  std::vector<std::string> Drain(const std::string& address = kAddress) {
    std::vector<std::string> out;
    while (auto lease = outbox_->Take(address)) {
      out.push_back(lease->event.subject.container.str() + lease->event.topic.substr(6));
      outbox_->Published(lease->seq);
    }
    return out;
  }

  UniqueFd memfd_;
  std::unique_ptr<Outbox> outbox_;
};

TEST_F(OutboxTest, BytesOfOneContainerAreBounded) {
  constexpr size_t kMost = 2000;
  Open({.bytes_per_container = kMost});
  Status status;
  while (status && outbox_->counters().queued < 100) {
    status = outbox_->Add(TaskStart(Of("a"), 1));
  }
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kResourceExhausted);
  EXPECT_THAT(status.error().message, testing::HasSubstr("events.max_bytes_per_container"));
  EXPECT_GT(outbox_->QueuedBytes(Of("a")), 0U);
  EXPECT_LE(outbox_->QueuedBytes(Of("a")), kMost);
  Add(TaskStart(Of("b"), 1));
  // An end is never refused.
  Add(TaskExit(Of("a"), ExecId(), 1, kEnded));
  Drain();
  EXPECT_EQ(outbox_->QueuedBytes(Of("a")), 0U);
}

TEST_F(OutboxTest, OneContainerInOrderOthersBeside) {
  Add(TaskCreate(Of("a"), {}));
  Add(TaskStart(Of("a"), 1));
  Add(TaskCreate(Of("b"), {}));
  const auto a = outbox_->Take(kAddress);
  const auto b = outbox_->Take(kAddress);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->event.subject.container.str(), "a");
  EXPECT_EQ(b->event.subject.container.str(), "b");
  // a's second event waits for its first one.
  EXPECT_FALSE(outbox_->Ready(kAddress));
  EXPECT_FALSE(outbox_->Take(kAddress));
  outbox_->GiveBack(a->seq);
  EXPECT_THAT(Drain(), ElementsAre("a/create", "a/start"));
  outbox_->Published(b->seq);
  EXPECT_EQ(outbox_->Queued(kAddress), 0U);
  EXPECT_THAT(outbox_->Addresses(), IsEmpty());
}

TEST_F(OutboxTest, EachContainerdHasItsOwnAndSoHasEachNamespace) {
  Add(TaskStart(Of("a"), 1));
  Add(TaskStart(Of("a", kOther), 1));
  Event event = TaskExit(Of("a"), ExecId(), 1, kEnded);
  event.subject.ns = *Namespace::Parse("moby");
  Add(event);
  EXPECT_THAT(Drain(kOther), ElementsAre("a/start"));
  const auto first = outbox_->Take(kAddress);
  const auto second = outbox_->Take(kAddress);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->event.subject.ns.str(), "moby");
}

TEST_F(OutboxTest, ANewEngineTakesBackWhatWasNotPublished) {
  Add(TaskCreate(Of("a"), {}));
  Add(TaskStart(Of("a"), 1));
  Add(TaskCreate(Of("b"), {}));
  Add(TaskExit(Of("a"), ExecId(), 1, kEnded));
  outbox_->Published(outbox_->Take(kAddress)->seq);
  // Out when the engine dies: it counts as not published.
  ASSERT_TRUE(outbox_->Take(kAddress));
  Open();
  EXPECT_THAT(outbox_->Addresses(), ElementsAre(kAddress));
  Add(TaskDelete(Of("a"), 1, kEnded));
  EXPECT_THAT(Drain(), ElementsAre("a/start", "b/create", "a/exit", "a/delete"));
  Open();
  EXPECT_THAT(Drain(), IsEmpty());
}

TEST_F(OutboxTest, WhatContainerdRefusesIsGone) {
  Add(TaskCreate(Of("a"), {}));
  Add(TaskStart(Of("a"), 1));
  outbox_->Rejected(outbox_->Take(kAddress)->seq);
  EXPECT_EQ(outbox_->counters().rejected, 1U);
  Open();
  EXPECT_THAT(Drain(), ElementsAre("a/start"));
}

TEST_F(OutboxTest, RefusesWhatContainerdWouldNotTake) {
  Event event = TaskStart(Of("a"), 1);
  event.timestamp_ns = 0;
  EXPECT_EQ(outbox_->Add(event).error().code, Code::kInvalidArgument);
  EXPECT_EQ(outbox_->Add(TaskStart(Of("a", ""), 1)).error().code, Code::kInvalidArgument);
  event = TaskStart(Of("a"), 1);
  event.payload.resize(size_t{2} << 20);
  EXPECT_EQ(outbox_->Add(event).error().code, Code::kInvalidArgument);
}

TEST_F(OutboxTest, AFullQueueRefusesAllButEnds) {
  Open({.per_container = 2, .per_address = 4, .total = 5});
  Add(TaskCreate(Of("a"), {}));
  Add(TaskStart(Of("a"), 1));
  EXPECT_EQ(outbox_->Add(TaskOom(Of("a"))).error().code, Code::kResourceExhausted);
  Add(TaskCreate(Of("b"), {}));
  Add(TaskCreate(Of("c"), {}));
  EXPECT_EQ(outbox_->Add(TaskCreate(Of("d"), {})).error().code, Code::kResourceExhausted);
  Add(TaskCreate(Of("d", kOther), {}));
  EXPECT_EQ(outbox_->Add(TaskCreate(Of("e", kOther), {})).error().code, Code::kResourceExhausted);
  EXPECT_EQ(outbox_->counters().refused, 3U);
  Add(TaskExit(Of("a"), ExecId(), 1, kEnded));
  EXPECT_THAT(Drain(), ElementsAre("a/create", "a/start", "b/create", "c/create", "a/exit"));
}

TEST_F(OutboxTest, BeginningsOfDeletedContainersMakeRoom) {
  Open({.per_container = 100, .per_address = 100, .total = 6});
  Add(TaskCreate(Of("a"), {}));
  Add(TaskStart(Of("a"), 1));
  Add(TaskCreate(Of("b"), {}));
  Add(TaskExit(Of("a"), ExecId(), 1, kEnded));
  Add(TaskDelete(Of("a"), 1, kEnded));
  // The next one of that id lives.
  Add(TaskCreate(Of("a"), {}));
  Add(TaskStart(Of("a"), 2));
  Add(TaskStart(Of("b"), 3));
  EXPECT_EQ(outbox_->Add(TaskOom(Of("b"))).error().code, Code::kResourceExhausted);
  EXPECT_EQ(outbox_->counters().dropped, 2U);
  const std::vector<std::string> expected = {"b/create", "a/exit",   "a/delete",
                                             "b/start",  "a/create", "a/start"};
  Open();
  EXPECT_THAT(Drain(), testing::UnorderedElementsAreArray(expected));
}

TEST_F(OutboxTest, WhatIsOnItsWayIsNotDropped) {
  Open({.per_container = 100, .per_address = 100, .total = 3});
  Add(TaskCreate(Of("a"), {}));
  Add(TaskStart(Of("a"), 1));
  const auto create = outbox_->Take(kAddress);
  Add(TaskDelete(Of("a"), 1, kEnded));
  Add(TaskCreate(Of("b"), {}));
  EXPECT_EQ(outbox_->counters().dropped, 1U);
  outbox_->GiveBack(create->seq);
  EXPECT_THAT(Drain(), ElementsAre("a/create", "a/delete", "b/create"));
}

TEST_F(OutboxTest, ManyEventsThroughAJournalThatIsCompacted) {
  Add(TaskCreate(Of("stuck"), {}));
  const auto stuck = outbox_->Take(kAddress);
  for (int i = 0; i < 20000; ++i) {
    Add(TaskStart(Of("a"), 1));
    outbox_->Published(outbox_->Take(kAddress)->seq);
  }
  Add(TaskStart(Of("b"), 1));
  Open();
  EXPECT_THAT(Drain(), ElementsAre("stuck/create", "b/start"));
}

}  // namespace
}  // namespace gantry::events

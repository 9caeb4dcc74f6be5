// SPDX-License-Identifier: Apache-2.0
//
// What is told of memory that ran out in a cgroup, also of one that is gone, by a fake tree
// of v2.
#include "core/cgroup/oom_watch.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <gantry/format.h>

#include "core/async/loop.h"
#include "tests/unit/cgroup/fake_cgroupfs.h"

namespace gantry::cgroup {
namespace {

using os::FakeCgroupFs;
using os::kBound;

class OomWatchOfAGoneCgroup : public testing::Test {
 protected:
  struct Watched {
    std::unique_ptr<OomWatch> watch;
    int reports = 0;
  };

  OomWatchOfAGoneCgroup() {
    fs_.Put("cgroup.controllers", "memory\n");
    Count("pod", 5);
  }

  void Count(const std::string& cgroup, int kills) const {
    fs_.Put(cgroup + "/memory.events", "oom 0\noom_kill " + std::to_string(kills) + "\n");
  }

  std::unique_ptr<Watched> Watch(const std::string& name) {
    Count("pod/" + name, 0);
    const auto hierarchy = CgroupHierarchy::At(fs_.path());
    EXPECT_TRUE(hierarchy);
    auto opened = OomWatch::Open(*Cgroup::Named(*hierarchy, "/pod/" + name));
    EXPECT_TRUE(opened) << opened.error().message;
    auto watched = std::make_unique<Watched>();
    watched->watch = *std::move(opened);
    watched->watch->Begin(loop_, [raw = watched.get()] { ++raw->reports; });
    return watched;
  }

  void Remove(const std::string& name) const {
    std::filesystem::remove_all(fs_.path() + "/pod/" + name);
  }

  void Turn() {
    while (loop_.RunOnce(std::chrono::milliseconds(0))) {
    }
  }

  FakeCgroupFs fs_;
  async::Loop loop_;
};

TEST_F(OomWatchOfAGoneCgroup, ItsParentTellsOnce) {
  const auto watched = Watch("c1");
  Count("pod", 6);
  Remove("c1");
  Turn();
  EXPECT_EQ(watched->reports, 0) << "how it ended is not known";
  EXPECT_TRUE(watched->watch->CheckAfterKill());
  EXPECT_FALSE(watched->watch->CheckAfterKill());
  EXPECT_EQ(watched->reports, 1);
}

TEST_F(OomWatchOfAGoneCgroup, InAScopeWhatIsAboveTheScopeTells) {
  Count("pod/c1.scope", 0);
  const auto watched = Watch("c1.scope/container");
  Count("pod", 6);
  Remove("c1.scope");
  EXPECT_TRUE(watched->watch->CheckAfterKill());
  EXPECT_EQ(watched->reports, 1);
}

TEST_F(OomWatchOfAGoneCgroup, OfTwoEachHasItsOwn) {
  const auto one = Watch("c1");
  const auto other = Watch("c2");
  const auto third = Watch("c3");
  Count("pod", 7);
  for (const char* name : {"c1", "c2", "c3"}) {
    Remove(name);
  }
  EXPECT_TRUE(one->watch->CheckAfterKill());
  EXPECT_TRUE(other->watch->CheckAfterKill());
  EXPECT_FALSE(third->watch->CheckAfterKill()) << "somebody else has killed it";
}

TEST_F(OomWatchOfAGoneCgroup, WhatAnotherHasToldIsTheOthers) {
  const auto gone = Watch("c1");
  const auto there = Watch("c2");
  Count("pod/c2", 1);
  Count("pod", 6);
  EXPECT_TRUE(there->watch->CheckNow());
  Remove("c1");
  EXPECT_FALSE(gone->watch->CheckAfterKill());
  EXPECT_EQ(gone->reports, 0);
}

TEST_F(OomWatchOfAGoneCgroup, OneThatEndedByItselfAsksNobody) {
  const auto watched = Watch("c1");
  Count("pod", 6);
  Remove("c1");
  EXPECT_FALSE(watched->watch->CheckNow());
  EXPECT_EQ(watched->reports, 0);
}

TEST_F(OomWatchOfAGoneCgroup, WithoutAParentThatCountsNothingIsTold) {
  const auto watched = Watch("c1");
  Remove("c1");
  std::filesystem::remove_all(fs_.path() + "/pod");
  EXPECT_FALSE(watched->watch->CheckAfterKill());
}

class FakeOom : public testing::Test {
 protected:
  FakeOom() {
    fs_.Put("cgroup.controllers", "");
    SetKills(4);
    const auto hierarchy = CgroupHierarchy::At(fs_.path());
    cgroup_ = *Cgroup::Named(*hierarchy, "/c");
  }

  void SetKills(int kills) { fs_.Put("c/memory.events", Format("oom 9\noom_kill {}\n", kills)); }

  FakeCgroupFs fs_;
  Cgroup cgroup_;
  async::Loop loop_;
};

TEST_F(FakeOom, IsReportedWhenTheCounterGrew) {
  int reports = 0;
  const auto watch = OomWatch::Open(cgroup_);
  ASSERT_TRUE(watch) << watch.error().message;
  (*watch)->Begin(loop_, [&] { ++reports; });

  fs_.Put("c/memory.events", "oom 10\noom_kill 4\n");
  EXPECT_FALSE((*watch)->CheckNow());
  SetKills(5);
  while (reports == 0 && loop_.RunOnce(kBound)) {
  }

  EXPECT_EQ(reports, 1);
  EXPECT_FALSE((*watch)->CheckNow());
}

TEST_F(FakeOom, IsReportedByTheLastLookAndNotAgain) {
  int reports = 0;
  const auto watch = OomWatch::Open(cgroup_);
  ASSERT_TRUE(watch);
  (*watch)->Begin(loop_, [&] { ++reports; });

  SetKills(6);
  EXPECT_TRUE((*watch)->CheckNow());
  while (loop_.RunOnce(std::chrono::milliseconds(0))) {
  }

  EXPECT_EQ(reports, 1);
}

TEST_F(FakeOom, MayEndItsWatch) {
  std::unique_ptr<OomWatch> watch;
  auto made = OomWatch::Open(cgroup_);
  ASSERT_TRUE(made);
  watch = *std::move(made);
  watch->Begin(loop_, [&] { watch.reset(); });

  SetKills(6);
  while (watch && loop_.RunOnce(kBound)) {
  }

  EXPECT_FALSE(watch);
  EXPECT_EQ(loop_.watches(), 0U);
}

TEST_F(FakeOom, NeedsTheMemoryController) {
  const auto hierarchy = CgroupHierarchy::At(fs_.path());
  const auto watch = OomWatch::Open(*Cgroup::Named(*hierarchy, "/without"));

  ASSERT_FALSE(watch);
  EXPECT_EQ(watch.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace gantry::cgroup

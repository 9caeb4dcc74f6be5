// SPDX-License-Identifier: Apache-2.0
//
// The engine's end of the link against a fake keeper.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/keeper_client/host_processes.h"
#include "core/keeper_client/keeper_link.h"
#include "core/log/log.h"
#include "tests/unit/async/loop_driver.h"
#include "tests/unit/task/fake_keeper.h"

namespace gantry::keeper_client {

class EngineTest : public testing::Test, public KeeperObserver {
 protected:
  EngineTest() {
    log::SetSinkForTest([](std::string_view) {});
    Connect();
  }

  static constexpr std::chrono::seconds kAnswersWithin{7};

  ~EngineTest() override {
    keeper_.Hangup();
    log::SetSinkForTest({});
  }

  /// A new link, as a new engine has one.
  void Connect() {
    keeper_.Hangup();
    test::RunAllReady(loop_);
    past_.emplace_back(std::move(link_), std::move(processes_));
    link_ = std::make_unique<KeeperLink>(loop_, keeper_.Connect(loop_), *this);
    processes_ = std::make_unique<HostProcesses>(loop_, *link_);
    seen_.clear();
    EXPECT_TRUE(link_->SayHello(kAnswersWithin, true));
    EXPECT_TRUE(Until([this] { return Saw("snapshot end"); }));
  }

  template <class T>
  T Await(async::Task<T> task) {
    return test::Await(loop_, std::move(task));
  }

  bool Until(const std::function<bool()>& happened) { return test::RunUntil(loop_, happened); }

  bool Saw(const std::string& what) const { return std::ranges::find(seen_, what) != seen_.end(); }

  void OnInstanceAdded(link::InstanceAdded instance) override {
    seen_.push_back("added " + instance.announce.id);
  }

  void OnInstanceRemoved(link::InstanceRemoved removed) override {
    seen_.push_back("removed " + std::to_string(removed.number));
  }

  void OnExit(const link::Exit& exit) override {
    seen_.push_back("exit " + std::to_string(exit.pid));
    processes_->OnExit(exit);
  }

  void OnNamedSpawn(const link::NamedSpawn& spawn) override {
    seen_.push_back("spawned " + spawn.name);
    processes_->OnNamedSpawn(spawn);
  }

  void OnEndedNames(const link::EndedNames& ended) override { processes_->OnEndedNames(ended); }

  void OnWatched(const link::Watched& watched) override { processes_->OnWatched(watched); }

  void OnStoredNames(std::vector<std::string> names) override {
    for (const std::string& name : names) {
      seen_.push_back("stored " + name);
    }
  }

  void OnSnapshotEnd() override {
    processes_->OnSnapshotEnd();
    seen_.push_back("snapshot end");
  }

  void OnRequest(link::Request request) override { seen_.push_back("request " + request.payload); }

  void OnConnectionClosed(uint64_t connection) override {
    seen_.push_back("closed " + std::to_string(connection));
  }

  void OnDeleteCall(const link::DeleteCall& call) override {
    seen_.push_back("delete " + std::to_string(call.instance));
  }

  void OnKeeperLost(Error) override { seen_.push_back("lost"); }

  void OnPinged() override { seen_.push_back("pinged"); }

  static SpawnRequest Request(const std::string& program, const std::string& tag = "") {
    SpawnRequest request;
    request.argv = {program};
    request.tag = tag;
    return request;
  }

  async::Loop loop_;
  test::FakeKeeper keeper_;
  /// Of engines before: their processes may still be held.
  std::vector<std::pair<std::unique_ptr<KeeperLink>, std::unique_ptr<HostProcesses>>> past_;
  std::unique_ptr<KeeperLink> link_;
  std::unique_ptr<HostProcesses> processes_;
  std::vector<std::string> seen_;
};

}  // namespace gantry::keeper_client

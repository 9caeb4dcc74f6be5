// SPDX-License-Identifier: Apache-2.0
//
// What the core lends to one container, for the tests: it remembers what it is told.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gantry/container.h>
#include <gantry/format.h>
#include <gantry/toolkit/descriptors/terminal.h>

namespace gantry {

/// What has been said, in its order. Thread: any.
class Heard {
 public:
  void Add(std::string word) {
    if (on_word) {
      on_word(word);
    }
    const std::lock_guard lock(mutex_);
    words_.push_back(std::move(word));
  }

  std::vector<std::string> words() const {
    const std::lock_guard lock(mutex_);
    return words_;
  }

  /// To be set before there is another thread.
  std::function<void(const std::string& word)> on_word;

 private:
  /// Guards what follows.
  mutable std::mutex mutex_;
  std::vector<std::string> words_;
};

/// Of an init, in its container's words.
class FakeProcessContext : public ProcessContext {
 public:
  FakeProcessContext(const std::string& id, Heard& heard)
      : id_(*ContainerId::Parse(id)), heard_(heard) {}

  const ContainerId& container() const override { return id_; }

  const ExecId& exec() const override { return exec_; }

  Result<Stdio> TakeStdio() override { return Stdio(); }

  Status Bind(std::shared_ptr<HostProcess>) override {
    heard_.Add("bound");
    return {};
  }

  void SetPid(HostPid) override {}

  void Exited(ExitStatus exit) override { heard_.Add(Format("exited {}", exit.status)); }

  Result<UniqueFd> OpenConsole(ConsoleKind) override {
    GANTRY_TRY(Terminal made, Terminal::Open());
    master = std::move(made.master);
    return std::move(made.replica);
  }

  Status AttachConsole(UniqueFd, ConsoleKind) override { return {}; }

  Status AttachStream(Stream, UniqueFd) override { return {}; }

  Status Save(std::string) override { return {}; }

  UniqueFd master;

 private:
  const ContainerId id_;
  const ExecId exec_;
  Heard& heard_;
};

class FakeContainerContext : public ContainerContext {
 public:
  explicit FakeContainerContext(const std::string& id) : init_(id, heard) {}

  ProcessContext& init() override { return init_; }

  Status UseCgroupsOf(const HostProcess&) override { return {}; }

  Result<std::vector<std::string>> MakeCgroups() override { return std::vector<std::string>(); }

  Result<InsideHooks> BeginHooks() override { return inside_hooks; }

  Status RunHooks(HookPoint point, HostPid) override {
    hooks.push_back(point);
    return {};
  }

  void UseStateDirs(std::vector<std::string>) override {}

  void UseCleanup(HostCommand) override {}

  void OutOfMemory() override { heard.Add("out of memory"); }

  Status Save(std::string) override { return {}; }

  Heard heard;
  InsideHooks inside_hooks;
  /// The points at which they were run.
  std::vector<HookPoint> hooks;

 private:
  FakeProcessContext init_;
};

}  // namespace gantry

// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/testing/process_context.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/descriptors/pipe.h>

namespace gantry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::chrono::seconds kLimit{20};

SpawnRequest Shell(const std::string& script, const std::string& tag = "") {
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", script};
  request.env = {"WHO=me"};
  request.tag = tag;
  return request;
}

TEST(FakeSandboxContext, SpawnsRealProcesses) {
  FakeSandboxContext context;
  auto out = MakeBlockingPipe().value();
  SpawnRequest request = Shell("echo $WHO $PPID; exit 3");
  request.fds.emplace_back(std::move(out.second), 1);
  const auto process = context.Spawn(std::move(request));
  ASSERT_TRUE(process) << process.error().message;
  const auto end = (*process)->Wait(kLimit);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code(), 3U);
  EXPECT_EQ((*process)->Ended()->code(), 3U) << "again";
  EXPECT_EQ((*process)->Signal(SIGTERM).error().code, Code::kNotFound);
  EXPECT_EQ(ReadStream(out.first), "me " + std::to_string(getpid()) + "\n");
}

TEST(FakeSandboxContext, RemembersWhatWasAskedFor) {
  FakeSandboxContext context;
  SpawnRequest request = Shell("exit 0", "one");
  request.cwd = "/tmp";
  ASSERT_TRUE(context.Spawn(std::move(request)));
  SpawnRequest absent;
  absent.argv = {"/no/such/program"};
  absent.tag = "two";
  const auto failed = context.Spawn(std::move(absent));
  EXPECT_EQ(failed.error().code, Code::kNotFound);
  EXPECT_THAT(failed.error().message, HasSubstr("/no/such/program"));
  EXPECT_THAT(context.Tags(), ElementsAre("one", "two"));
  EXPECT_EQ(context.asked.front().cwd, "/tmp");
  EXPECT_THAT(context.asked.front().env, ElementsAre("WHO=me"));
  EXPECT_EQ(context.spawned.size(), 1U);
  EXPECT_EQ(context.SpawnedUnder("one"), context.spawned.front());
  EXPECT_EQ(context.SpawnedUnder("two"), nullptr);
}

TEST(FakeSandboxContext, RefusesWhatTheTestRefuses) {
  FakeSandboxContext context;
  context.on_spawn = [](const SpawnRequest&) { return Status(Fail(Code::kAborted, "not now")); };
  EXPECT_EQ(context.Spawn(Shell("exit 0")).error().message, "not now");
  EXPECT_EQ(context.asked.size(), 1U);
  EXPECT_TRUE(context.spawned.empty());
}

TEST(FakeSandboxContext, RefusesATerminalThatIsNoneOfTheDescriptors) {
  FakeSandboxContext context;
  SpawnRequest request = Shell("exit 0");
  request.controlling_terminal = 0;
  EXPECT_EQ(context.Spawn(std::move(request)).error().code, Code::kInvalidArgument);
}

TEST(FakeSandboxContext, FindsByItsTagWhatTheEngineBeforeHasSpawned) {
  FakeSandboxContext context;
  const auto process = context.Spawn(Shell("exec sleep 1000", "init/c1")).value();
  EXPECT_EQ(context.FindSpawned("init/c1"), nullptr) << "not what this engine has spawned";
  context.RestartEngine();
  EXPECT_EQ(context.FindSpawned("init/c2"), nullptr);
  EXPECT_EQ(context.FindSpawned("init/c1"), process);
  EXPECT_EQ(context.FindSpawned("init/c1"), nullptr) << "once";
  context.RestartEngine();
  EXPECT_EQ(context.FindSpawned("init/c1"), process) << "the next engine finds it, too";
  EXPECT_EQ(context.Alive(), 1U);
}

TEST(FakeSandboxContext, FindsTheNewestUnderATag) {
  FakeSandboxContext context;
  context.LeaveBehind("exec", RunShell("exit 1").value());
  const auto newest = context.Spawn(Shell("exit 2", "exec")).value();
  context.RestartEngine();
  EXPECT_EQ(context.FindSpawned("exec"), newest);
}

TEST(FakeSandboxContext, KeepsStateAndDescriptorsOverARestart) {
  FakeSandboxContext context;
  auto pipe = MakeBlockingPipe().value();
  ASSERT_TRUE(context.Store("out", pipe.second));
  ASSERT_TRUE(context.Save("state"));
  ASSERT_TRUE(context.Bind(RunShell("exit 0").value()));
  context.Exited({7, 1});
  pipe.second.reset();
  context.RestartEngine();
  EXPECT_EQ(context.blob, "state");
  EXPECT_EQ(context.bound, nullptr);
  EXPECT_FALSE(context.exited);
  EXPECT_THAT(context.StoredNames(), ElementsAre("out"));
  for (const std::string word : {"a", "b"}) {
    const auto copy = context.Take("out");
    ASSERT_TRUE(copy) << "it stays stored";
    EXPECT_EQ(write(copy->get(), word.data(), word.size()), 1);
  }
  context.Drop("out");
  EXPECT_EQ(context.Take("out").error().code, Code::kNotFound);
  EXPECT_EQ(ReadStream(pipe.first), "ab") << "nobody else has it";
}

TEST(FakeSandboxContext, HasTheLimitsOfTheCore) {
  FakeSandboxContext context;
  const UniqueFd fd(dup(0));
  EXPECT_EQ(context.Store(std::string(65, 'x'), fd).error().code, Code::kInvalidArgument);
  EXPECT_EQ(context.Store("", fd).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(context.Store(std::string(64, 'x'), fd));
  EXPECT_TRUE(context.Save(std::string(64 << 10, 'x')));
  EXPECT_EQ(context.Save(std::string((64 << 10) + 1, 'y')).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(context.blob.starts_with('x')) << "what is there is not lost";
}

TEST(FakeSandboxContext, IsBoundToOneProcess) {
  FakeSandboxContext context;
  const auto one = context.Spawn(Shell("exit 0")).value();
  EXPECT_TRUE(context.Bind(one));
  EXPECT_TRUE(context.Bind(one));
  EXPECT_EQ(context.Bind(context.Spawn(Shell("exit 0")).value()).error().code,
            Code::kFailedPrecondition);
}

TEST(FakeSandboxContext, RecoversWhatItKnowsAndNoOtherProcess) {
  FakeSandboxContext context;
  const auto process = context.Spawn(Shell("exec sleep 1000")).value();
  EXPECT_EQ(context.Recover(process->pid(), process->start_time()).value(), process);
  EXPECT_EQ(context.Recover(process->pid(), process->start_time() + 1).error().code,
            Code::kNotFound);
  const auto other = RunShell("exec sleep 1000").value();
  EXPECT_THAT(context.Adopt(other->pid()).error().message, HasSubstr("Orphans::kAdopted"));
}

/// Calls as long as there is something to read, and not any more when it is destroyed.
TEST(FakeSandboxContext, WatchesOnAThreadOfItsOwn) {
  FakeSandboxContext context;
  auto pipe = MakeBlockingPipe().value();
  std::mutex mutex;
  std::condition_variable called;
  int calls = 0;
  std::thread::id thread;
  auto watch = context.WatchReadable(pipe.first.get(), [&] {
    const std::lock_guard lock(mutex);
    ++calls;
    thread = std::this_thread::get_id();
    called.notify_all();
  });
  ASSERT_TRUE(watch);
  ASSERT_EQ(write(pipe.second.get(), "x", 1), 1);
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(called.wait_for(lock, kLimit, [&] { return calls >= 2; }));
  }
  watch->reset();
  EXPECT_NE(thread, std::this_thread::get_id());
  const int before = calls;
  ASSERT_EQ(write(pipe.second.get(), "x", 1), 1);
  EXPECT_EQ(calls, before);
}

TEST(FakeSandboxContext, LetsAWatchEndItself) {
  FakeSandboxContext context;
  auto pipe = MakeBlockingPipe().value();
  std::mutex mutex;
  std::condition_variable called;
  bool ended = false;
  std::unique_ptr<Watch> watch;
  std::unique_lock lock(mutex);
  watch = context
              .WatchReadable(pipe.first.get(),
                             [&] {
                               const std::lock_guard inner(mutex);
                               watch.reset();
                               ended = true;
                               called.notify_all();
                             })
              .value();
  ASSERT_EQ(write(pipe.second.get(), "x", 1), 1);
  EXPECT_TRUE(called.wait_for(lock, kLimit, [&] { return ended; }));
}

TEST(FakeSandboxContext, HearsTheLogAndCounts) {
  FakeSandboxContext context;
  std::thread speaker([&] { context.Log(LogLevel::kInfo, "the sentry has crashed"); });
  EXPECT_TRUE(context.WaitForLog("has crashed", kLimit));
  speaker.join();
  EXPECT_FALSE(context.WaitForLog("never said", std::chrono::milliseconds(0)));
  context.Count("boots", 2);
  context.Count("boots", 3);
  EXPECT_EQ(context.counts["boots"], 5U);
}

}  // namespace
}  // namespace gantry

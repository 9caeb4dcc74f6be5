// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/context/lent_context.h>
#include <gantry/toolkit/descriptors/memfd.h>

namespace gantry {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Says what it was asked, and has nothing.
class AskedContext : public SandboxContext {
 public:
  Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) override {
    asked.push_back("Spawn " + request.tag);
    return std::shared_ptr<HostProcess>();
  }

  Result<std::shared_ptr<HostProcess>> Adopt(HostPid) override {
    asked.emplace_back("Adopt");
    return std::shared_ptr<HostProcess>();
  }

  Result<std::shared_ptr<HostProcess>> Recover(HostPid, uint64_t) override {
    asked.emplace_back("Recover");
    return std::shared_ptr<HostProcess>();
  }

  Result<std::shared_ptr<HostProcess>> AdoptAs(HostPid, std::string_view tag) override {
    asked.push_back("AdoptAs " + std::string(tag));
    return nullptr;
  }

  std::shared_ptr<HostProcess> FindSpawned(std::string_view tag) override {
    asked.push_back("FindSpawned " + std::string(tag));
    return nullptr;
  }

  Result<std::unique_ptr<Watch>> WatchReadable(int, std::function<void()>) override {
    asked.emplace_back("WatchReadable");
    return std::unique_ptr<Watch>();
  }

  Status Bind(std::shared_ptr<HostProcess>) override {
    asked.emplace_back("Bind");
    return {};
  }

  void SetPid(HostPid) override { asked.emplace_back("SetPid"); }

  void Exited(ExitStatus) override { asked.emplace_back("Exited"); }

  Status Store(std::string_view, const UniqueFd&) override {
    asked.emplace_back("Store");
    return {};
  }

  Status StoreAll(std::span<const NamedFd>) override {
    asked.emplace_back("StoreAll");
    return {};
  }

  Result<UniqueFd> Take(std::string_view) override {
    asked.emplace_back("Take");
    return UniqueFd();
  }

  void Drop(std::string_view) override { asked.emplace_back("Drop"); }

  Status Save(std::string) override {
    asked.emplace_back("Save");
    return {};
  }

  void Log(LogLevel, std::string_view message) override {
    asked.push_back("Log " + std::string(message));
  }

  void Count(std::string_view, uint64_t) override { asked.emplace_back("Count"); }

  std::chrono::milliseconds TimeLeft() const override { return std::chrono::milliseconds(5); }

  std::vector<std::string> asked;
};

/// Every call of the interface, in its order.
void AskAll(SandboxContext& context) {
  SpawnRequest request;
  request.tag = "tag";
  EXPECT_TRUE(context.Spawn(std::move(request)));
  EXPECT_TRUE(context.Adopt({1}));
  EXPECT_TRUE(context.AdoptAs({1}, "tag"));
  EXPECT_TRUE(context.Recover({1}, 1));
  EXPECT_EQ(context.FindSpawned("tag"), nullptr);
  EXPECT_TRUE(context.WatchReadable(0, [] {}));
  EXPECT_TRUE(context.Bind(nullptr));
  context.SetPid({1});
  context.Exited({});
  const UniqueFd file = CreateMemfd("file").value();
  EXPECT_TRUE(context.Store("one", file));
  const NamedFd two{"two", file};
  EXPECT_TRUE(context.StoreAll({&two, 1}));
  EXPECT_TRUE(context.Take("one"));
  context.Drop("one");
  EXPECT_TRUE(context.Save("blob"));
  context.Log(LogLevel::kInfo, "words");
  context.Count("calls");
}

TEST(ForwardingContext, PassesEveryCallOn) {
  AskedContext host;
  ForwardingSandboxContext context(host);
  AskAll(context);
  EXPECT_THAT(host.asked,
              ElementsAre("Spawn tag", "Adopt", "AdoptAs tag", "Recover", "FindSpawned tag",
                          "WatchReadable", "Bind", "SetPid", "Exited", "Store", "StoreAll", "Take",
                          "Drop", "Save", "Log words", "Count"));
  EXPECT_EQ(context.TimeLeft(), std::chrono::milliseconds(5));
}

TEST(LentContext, LendsProcessesAndWatchesAlone) {
  AskedContext host;
  LentContext context(host, "name");
  AskAll(context);
  EXPECT_THAT(host.asked, ElementsAre("Spawn name/tag", "Adopt", "AdoptAs name/tag", "Recover",
                                      "FindSpawned name/tag", "WatchReadable", "Log name: words"));
}

TEST(LentContext, StoresForItself) {
  AskedContext host;
  LentContext context(host, "name");
  const UniqueFd file = SealedMemfd("file", "text", MemfdUse::kRead).value();
  const NamedFd named{"one", file};
  ASSERT_TRUE(context.StoreAll({&named, 1}));
  const auto taken = context.Take("one");
  ASSERT_TRUE(taken);
  EXPECT_EQ(ReadAt(taken->get(), 0, 100).value_or(""), "text");
  context.Drop("one");
  EXPECT_EQ(context.Take("one").error().code, Code::kNotFound);
  EXPECT_THAT(host.asked, IsEmpty());
}

TEST(LentContext, HasTimeForARemoval) {
  AskedContext host;
  LentContext context(host, "name");
  EXPECT_EQ(context.TimeLeft(), std::chrono::milliseconds(5));
  context.BeginRemoval();
  EXPECT_EQ(context.TimeLeft(), std::chrono::milliseconds::max());
}

}  // namespace
}  // namespace gantry

// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/fd_store.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <gmock/gmock.h>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/os/fs.h"

namespace gantry::keeper {
namespace {

UniqueFd Null() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

TEST(FdStore, GivesASecondDescriptorAndKeepsItsOwn) {
  FdStore store;
  ASSERT_TRUE(store.Put("a", Null()));
  const auto first = store.Take("a");
  const auto second = store.Take("a");
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->get(), second->get());
  EXPECT_EQ(store.size(), 1U);
}

/// A store with a socket "s" that listens.
class ListeningFdStore : public testing::Test {
 protected:
  void SetUp() override {
    Result<UniqueFd> listener = ListenUnix(path_);
    ASSERT_TRUE(listener);
    ASSERT_TRUE(store_.Put("s", std::move(*listener)));
  }

  const os::TempDir dir_ = *os::TempDir::Create();
  const std::string path_ = dir_.path() + "/s";
  FdStore store_;
};

TEST_F(ListeningFdStore, GivesTheConnectionThatWaits) {
  const auto listens = [](const UniqueFd& fd) {
    int yes = 0;
    socklen_t size = sizeof(yes);
    getsockopt(fd.get(), SOL_SOCKET, SO_ACCEPTCONN, &yes, &size);
    return yes != 0;
  };
  EXPECT_TRUE(listens(*store_.Take("s"))) << "nobody has connected";
  const auto client = ConnectUnix(path_);
  ASSERT_TRUE(client);
  ASSERT_EQ(write(client->get(), "x", 1), 1);
  for (int time = 0; time < 2; ++time) {
    const auto connection = store_.Take("s");
    ASSERT_TRUE(connection);
    char byte = 0;
    EXPECT_EQ(recv(connection->get(), &byte, 1, MSG_PEEK), 1);
    EXPECT_EQ(byte, 'x');
  }
}

TEST_F(ListeningFdStore, WaitsForNobodyOnASocketThatWould) {
  // The flags are the file's, not the descriptor's.
  ASSERT_EQ(fcntl(store_.Take("s")->get(), F_SETFL, 0), 0);
  const auto client = ConnectUnix(path_);
  ASSERT_TRUE(client);
  const auto taken = store_.Take("s");
  ASSERT_TRUE(taken);
  EXPECT_TRUE(UniqueFd(accept(taken->get(), nullptr, nullptr)))
      << "it is still the one that listens";
}

TEST(FdStore, KnowsNothingDropped) {
  FdStore store;
  ASSERT_TRUE(store.Put("a", Null()));
  store.Drop("a");
  store.Drop("a");
  EXPECT_EQ(store.Take("a").error().code, Code::kNotFound);
}

TEST(FdStore, RefusesWhenFullButReplaces) {
  FdStore store(2, 2);
  ASSERT_TRUE(store.Put("a", Null()));
  ASSERT_TRUE(store.Put("b", Null()));
  EXPECT_EQ(store.Put("c", Null()).error().code, Code::kResourceExhausted);
  EXPECT_TRUE(store.Put("a", Null()));
  EXPECT_THAT(store.Names(), testing::ElementsAre("a", "b"));
}

TEST(FdStore, LeavesRoomToTheOthers) {
  FdStore store(8);
  ASSERT_TRUE(store.Put("7/a", Null()));
  ASSERT_TRUE(store.Put("7/sandbox/b", Null()));
  EXPECT_EQ(store.Put("7/c", Null()).error().code, Code::kResourceExhausted);
  EXPECT_TRUE(store.Put("7/a", Null()));
  EXPECT_TRUE(store.Put("77/c", Null()));
  store.Drop("7/a");
  EXPECT_TRUE(store.Put("7/c", Null()));
}

TEST(FdStore, RefusesBadNamesAndNoDescriptor) {
  FdStore store;
  EXPECT_EQ(store.Put("", Null()).error().code, Code::kInvalidArgument);
  EXPECT_EQ(store.Put(std::string(257, 'x'), Null()).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(store.Put(std::string(256, 'x'), Null()));
  EXPECT_EQ(store.Put("a", UniqueFd()).error().code, Code::kInvalidArgument);
}

TEST(FdStore, GivesAPodNoMoreThanAContainer) {
  const auto group_of = [](std::string_view owner) {
    return std::string(owner == "9" ? "other" : owner == "events" ? "" : "pod");
  };
  FdStore store(100, 4, group_of);
  for (const char* name : {"1/a", "2/a", "3/a", "4/a"}) {
    ASSERT_TRUE(store.Put(name, Null()));
  }
  const auto refused = store.Put("5/a", Null());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("of this pod"));
  EXPECT_TRUE(store.Put("1/a", Null())) << "in place of what was there";
  EXPECT_TRUE(store.Put("9/a", Null())) << "of another pod";
  EXPECT_TRUE(store.Put("events", Null())) << "of none";
  store.Drop("2/a");
  EXPECT_TRUE(store.Put("5/a", Null()));
}

}  // namespace
}  // namespace gantry::keeper

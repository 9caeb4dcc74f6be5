// SPDX-License-Identifier: Apache-2.0
//
// Link messages as bytes.
#include <sys/resource.h>

#include <gmock/gmock.h>

#include <gantry/toolkit/proto/proto_message.h>

#include "core/link/messages.h"
#include "core/link/record_peek.h"

namespace gantry::link {
namespace {

using testing::ElementsAre;

/// A second one of a number would be a duplicate case, one that is left out a warning; neither
/// compiles.
constexpr bool IsKnown(Type type) {
  switch (type) {
    case Type::kAnnounce:
    case Type::kAnnounced:
    case Type::kDelete:
    case Type::kDeleted:
    case Type::kQuery:
    case Type::kKeeperStatus:
    case Type::kUpgrade:
    case Type::kUpgraded:
    case Type::kUpgradeKeeper:
    case Type::kKeeperUpgraded:
    case Type::kFailed:
    case Type::kHello:
    case Type::kWelcome:
    case Type::kInstanceAdded:
    case Type::kInstanceRemoved:
    case Type::kSnapshotEnd:
    case Type::kStoredNames:
    case Type::kNamedSpawn:
    case Type::kAddMember:
    case Type::kMemberAdded:
    case Type::kWatched:
    case Type::kRequest:
    case Type::kResponse:
    case Type::kConnectionClosed:
    case Type::kDeleteCall:
    case Type::kDeleteDone:
    case Type::kRecovering:
    case Type::kStreamOpened:
    case Type::kStreamTaken:
    case Type::kSpawn:
    case Type::kSpawned:
    case Type::kAdopt:
    case Type::kExit:
    case Type::kExitAck:
    case Type::kAdopted:
    case Type::kEndedNames:
    case Type::kForgetEnded:
    case Type::kPut:
    case Type::kPutDone:
    case Type::kTake:
    case Type::kTaken:
    case Type::kDrop:
    case Type::kProtect:
    case Type::kForget:
    case Type::kInquire:
    case Type::kInventory:
    case Type::kRefuse:
    case Type::kPing:
    case Type::kPong:
      return true;
  }
  return false;
}

TEST(Codec, TellsMessagesApart) {
  EXPECT_TRUE(IsKnown(Type::kRecovering));
  EXPECT_FALSE(IsKnown(Type{}));
}

TEST(Codec, KeepsEveryKindOfField) {
  Spawn sent;
  sent.tag = 0xffffffffffffffff;
  sent.path = "/bin/true";
  sent.argv = {"true", "", "x"};
  sent.fd_targets = {0, -1, 2};
  sent.new_session = true;
  sent.cgroup_fd = 0;
  sent.rlimits = {{7, 1024, UINT64_MAX}, {3, 0, 0}};
  sent.oom_score_adj = -998;
  sent.new_namespaces = 0x7e020000;
  sent.uid_map = {{0, 100000, 65536}, {65536, UINT32_MAX, 1}};
  const auto got = DecodeProto<Spawn>(EncodeProto(sent));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->tag, sent.tag);
  EXPECT_EQ(got->argv, sent.argv);
  EXPECT_THAT(got->fd_targets, ElementsAre(0, -1, 2));
  EXPECT_TRUE(got->new_session);
  EXPECT_EQ(got->cgroup_fd, 0U);
  EXPECT_EQ(got->controlling_terminal, std::nullopt);
  ASSERT_EQ(got->rlimits.size(), 2U);
  EXPECT_EQ(got->rlimits[0].hard, UINT64_MAX);
  EXPECT_EQ(got->oom_score_adj, -998);
  EXPECT_EQ(got->new_namespaces, 0x7e020000U);
  ASSERT_EQ(got->uid_map.size(), 2U);
  EXPECT_EQ(got->uid_map[0].outside, 100000U);
  EXPECT_EQ(got->uid_map[1].outside, UINT32_MAX);
  EXPECT_TRUE(got->gid_map.empty());
}

TEST(Codec, KeepsNestedMessages) {
  InstanceAdded sent;
  sent.number = 5;
  sent.announce.id = "c1";
  sent.announce.options = std::string("\0\xff", 2);
  const auto got = DecodeProto<InstanceAdded>(EncodeProto(sent));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->announce.id, "c1");
  EXPECT_EQ(got->announce.options, sent.announce.options);
}

TEST(Codec, AnnouncesTheLimitsOfTheShim) {
  Announce sent;
  sent.rlimits = OwnRlimits();
  ASSERT_EQ(sent.rlimits.size(), static_cast<size_t>(RLIM_NLIMITS));
  const auto got = DecodeProto<Announce>(EncodeProto(sent));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->rlimits, sent.rlimits);
  EXPECT_TRUE(DecodeProto<Announce>("")->rlimits.empty()) << "an earlier shim says none";
}

TEST(Rlimits, OfOthersOnlyThoseThatAreAnyCount) {
  const Rlimit files{RLIMIT_NOFILE, 10, 20};
  const Rlimit core{RLIMIT_CORE, UINT64_MAX, UINT64_MAX};
  EXPECT_THAT(ValidRlimits({files,
                            {-1, 1, 1},
                            {RLIM_NLIMITS, 1, 1},
                            {RLIMIT_CPU, 2, 1},
                            {RLIMIT_NOFILE, 1, 1},
                            core}),
              ElementsAre(files, core));
}

TEST(Codec, SkipsFieldsItDoesNotKnow) {
  ProtoWriter newer;
  newer.Bytes(99, "later");
  newer.Varint(1, 7);
  const auto got = DecodeProto<InstanceRemoved>(newer.str());
  ASSERT_TRUE(got);
  EXPECT_EQ(got->number, 7U);
}

TEST(Codec, ReadsAnAbsentFieldAsZero) {
  EXPECT_EQ(DecodeProto<Hello>("")->version, 0U);
  EXPECT_EQ(DecodeProto<Welcome>(EncodeProto(Welcome{}))->version, 0U);
}

TEST(Codec, RefusesTruncatedBytes) {
  const std::string bytes = EncodeProto(Failed{5, "a message of some length"});
  for (size_t length = 1; length < bytes.size(); ++length) {
    const auto got = DecodeProto<Failed>(std::string_view(bytes).substr(0, length));
    EXPECT_TRUE(!got || length == 2) << length;
  }
}

TEST(Codec, RefusesAFieldOfTheWrongKind) {
  ProtoWriter wrong;
  wrong.Bytes(1, "text");
  EXPECT_FALSE(DecodeProto<InstanceRemoved>(wrong.str()));
}

TEST(Codec, RefusesEndlessLists) {
  ProtoWriter many;
  for (size_t i = 0; i <= proto_message::kMaxElements; ++i) {
    many.Bytes(1, "");
  }
  EXPECT_FALSE(DecodeProto<StoredNames>(many.str()));
}

TEST(RecordPeek, IsFoundInARecord) {
  RecordPeek peek;
  peek.init_pid = 42;
  peek.cgroup_dirs = {"/sys/fs/cgroup/a"};
  peek.exit_status = 0;
  ProtoWriter record;
  record.Bytes(1, "something else");
  record.Bytes(kPeekField, EncodeProto(peek));
  const auto got = PeekRecord(record.str());
  ASSERT_TRUE(got);
  EXPECT_EQ(got->init_pid, 42);
  EXPECT_EQ(got->exit_status, 0U);
  EXPECT_THAT(got->cgroup_dirs, ElementsAre("/sys/fs/cgroup/a"));
}

TEST(RecordPeek, IsNotFoundInOtherRecords) {
  EXPECT_EQ(PeekRecord("").error().code, Code::kNotFound);
  EXPECT_EQ(PeekRecord("\xff\xff\xff").error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace gantry::link

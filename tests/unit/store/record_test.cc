// SPDX-License-Identifier: Apache-2.0
#include "core/store/record.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/link/record_peek.h"
#include "core/os/fs.h"
#include "core/store/checksum.h"
#include "proto/gantry/record.pb.h"

namespace gantry::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

Record Full() {
  Record record;
  record.kind = Kind::kContainer;
  record.ns = *Namespace::Parse("k8s.io");
  record.id = "c1";
  record.sandbox_id = "pod1";
  record.bundle = "/run/b";
  record.handler = "runc";
  record.backend = "runc";
  record.options_json = R"({"BinaryName":"crun"})";
  record.stdio = {"/f/in", "/f/out", "/f/err", false};
  record.state = State::kRunning;
  record.init = {HostPid{42}, 123456789, HostPid{43}, false, 0, 0, false};
  record.sandbox_prefix = "7/sandbox";
  ExecRecord exec;
  exec.id = *ExecId::Parse("e1");
  exec.spec_json = "{}";
  exec.stdio = {"", "/f/e1", "", true};
  exec.state = State::kStopped;
  exec.process = {HostPid{44}, 5, HostPid{}, true, 137, -1, true, std::string("\0k", 2)};
  exec.stdin_closed = true;
  record.execs = {exec};
  record.mounts = {{"overlay", "overlay", "/run/b/rootfs"}};
  record.cgroups = {"/sys/fs/cgroup/a", "/sys/fs/cgroup/b"};
  record.blobs = {{"container", std::string("\0\xff", 2)}, {"sandbox", ""}};
  record.created_at_ns = 1'700'000'000'000'000'000;
  record.netns_path = "/var/run/netns/x";
  record.rootfs = "/run/b/rootfs";
  record.private_pids = false;
  record.cleanup = link::Command{{"/bin/crun", "delete", "c1"}, {"PATH=/bin"}, "/run/b"};
  record.annotations = {{"a", "b"}};
  record.checkpoint = "/cp";
  record.pod_config = std::string("\x01\x00", 2);
  return record;
}

TEST(RecordCodec, GivesBackWhatItWasGiven) {
  const auto back = Decode(Encode(Full()));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_TRUE(*back == Full());
}

TEST(RecordCodec, IsTheLayoutOfTheProto) {
  record::v1::Record proto;
  ASSERT_TRUE(proto.ParseFromString(Encode(Full())));
  EXPECT_EQ(proto.schema(), 2U);
  EXPECT_EQ(proto.namespace_(), "k8s.io");
  EXPECT_EQ(proto.id(), "c1");
  EXPECT_EQ(proto.sandbox_id(), "pod1");
  EXPECT_EQ(proto.bundle(), "/run/b");
  EXPECT_EQ(proto.handler(), "runc");
  EXPECT_EQ(proto.backend(), "runc");
  EXPECT_EQ(proto.options_json(), R"({"BinaryName":"crun"})");
  EXPECT_EQ(proto.stdio().stderr(), "/f/err");
  EXPECT_EQ(proto.state(), 4U);
  EXPECT_EQ(proto.init().pid(), 42);
  EXPECT_EQ(proto.init().start_time(), 123456789U);
  EXPECT_EQ(proto.init().shown_pid(), 43);
  ASSERT_EQ(proto.execs_size(), 1);
  EXPECT_TRUE(proto.execs(0).stdio().terminal());
  EXPECT_TRUE(proto.execs(0).process().exited());
  EXPECT_EQ(proto.execs(0).process().exit_status(), 137U);
  EXPECT_EQ(proto.execs(0).process().exited_at_ns(), -1);
  EXPECT_FALSE(proto.init().unpublished());
  EXPECT_TRUE(proto.execs(0).process().unpublished());
  EXPECT_EQ(proto.init().saved(), "");
  EXPECT_EQ(proto.execs(0).process().saved(), std::string("\0k", 2));
  EXPECT_EQ(proto.sandbox_prefix(), "7/sandbox");
  EXPECT_EQ(proto.rootfs(), "/run/b/rootfs");
  EXPECT_TRUE(proto.shared_pids());
  EXPECT_THAT(proto.cleanup().argv(), ElementsAre("/bin/crun", "delete", "c1"));
  EXPECT_THAT(proto.cleanup().env(), ElementsAre("PATH=/bin"));
  EXPECT_EQ(proto.cleanup().cwd(), "/run/b");
  EXPECT_THAT(proto.brief().cleanup().argv(), ElementsAre("/bin/crun", "delete", "c1"));
  EXPECT_EQ(proto.mounts(0).target(), "/run/b/rootfs");
  EXPECT_THAT(proto.cgroups(), ElementsAre("/sys/fs/cgroup/a", "/sys/fs/cgroup/b"));
  EXPECT_EQ(proto.blobs().at("container"), std::string("\0\xff", 2));
  EXPECT_EQ(proto.created_at_ns(), 1'700'000'000'000'000'000);
  EXPECT_EQ(proto.netns_path(), "/var/run/netns/x");
  EXPECT_EQ(proto.annotations().at("a"), "b");
  EXPECT_EQ(proto.checkpoint(), "/cp");
  EXPECT_EQ(proto.pod_config(), std::string("\x01\x00", 2));
  EXPECT_EQ(proto.brief().pid(), 42);
  EXPECT_FALSE(proto.brief().has_exit_status());
}

TEST(RecordCodec, TellsTheShimWhatToKill) {
  Record record = Full();
  auto peek = link::PeekRecord(Encode(record));
  ASSERT_TRUE(peek.has_value());
  EXPECT_EQ(peek->init_pid, 42);
  EXPECT_EQ(peek->start_time, 123456789U);
  EXPECT_THAT(peek->cgroup_dirs, ElementsAre("/sys/fs/cgroup/a", "/sys/fs/cgroup/b"));
  EXPECT_FALSE(peek->exit_status.has_value());
  record.init.exited = true;
  record.init.exited_at_ns = 77;
  peek = link::PeekRecord(Encode(record));
  ASSERT_TRUE(peek.has_value());
  EXPECT_EQ(peek->exit_status, 0U);
  EXPECT_EQ(peek->exited_at_ns, 77);
}

TEST(RecordDecode, RefusesEveryTruncationAndEveryFlippedByte) {
  const std::string bytes = Encode(Full());
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto record = Decode(bytes.substr(0, length));
    ASSERT_FALSE(record.has_value()) << length;
    EXPECT_EQ(record.error().code, Code::kDataLoss);
  }
  for (size_t i = 2; i < bytes.size(); ++i) {
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ 0x20);
    EXPECT_FALSE(Decode(bad).has_value()) << i;
  }
}

TEST(RecordDecode, RefusesALaterSchema) {
  std::string bytes = Encode(Full());
  bytes[1] = 3;
  const auto record = Decode(bytes);
  ASSERT_FALSE(record.has_value());
  EXPECT_EQ(record.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(record.error().message,
              HasSubstr("schema 3 is of a later gantry, this one reads up to 2"));
}

// Records of engines of that time. They stay as they are.

Result<Record> OfSchema1(const std::string& name) {
  auto bytes = ReadFile(std::string(TEST_RECORDS) + "/schema-1/" + name, kMaxRecordBytes);
  return bytes ? Decode(*bytes) : std::unexpected(bytes.error());
}

TEST(RecordOfSchema1, OfAContainerWithAnExec) {
  const auto record = OfSchema1("container");
  ASSERT_TRUE(record.has_value()) << record.error().message;
  EXPECT_EQ(record->ns.str(), "ge24753");
  EXPECT_EQ(record->id, "t0034-35");
  EXPECT_EQ(record->kind, Kind::kContainer);
  EXPECT_EQ(record->state, State::kRunning);
  EXPECT_EQ(record->init.pid.value, 28155);
  EXPECT_EQ(record->init.start_time, 5196285U);
  ASSERT_EQ(record->execs.size(), 1U);
  EXPECT_EQ(record->execs[0].id.str(), "x33");
  EXPECT_EQ(record->execs[0].state, State::kRunning);
  EXPECT_EQ(record->execs[0].process.pid.value, 28573);
  EXPECT_THAT(record->execs[0].stdio.out, HasSubstr("x33-stdout"));
  EXPECT_EQ(record->mounts.size(), 1U);
  EXPECT_EQ(record->cgroups.size(), 11U);
  EXPECT_EQ(record->blobs.at("container"), "28155 5196285 /usr/bin/crun");
  EXPECT_EQ(record->sandbox_prefix, "101/sandbox");
  EXPECT_EQ(record->rootfs, "") << "config.json has to be read";
}

TEST(RecordOfSchema1, OfAPodAndItsContainer) {
  const auto pod = OfSchema1("pod");
  ASSERT_TRUE(pod.has_value()) << pod.error().message;
  EXPECT_EQ(pod->kind, Kind::kSandbox);
  EXPECT_EQ(pod->init.pid.value, 32485);
  EXPECT_EQ(pod->blobs.at("made-cgroup"), "1");
  EXPECT_FALSE(pod->pod_config.empty());
  const auto member = OfSchema1("pod-member");
  ASSERT_TRUE(member.has_value()) << member.error().message;
  EXPECT_EQ(member->sandbox_id, "t0007-pod");
  EXPECT_EQ(member->state, State::kRunning);
}

TEST(RecordOfSchema1, IsWrittenAsTheNewOne) {
  const auto record = OfSchema1("container");
  ASSERT_TRUE(record.has_value());
  record::v1::Record proto;
  ASSERT_TRUE(proto.ParseFromString(Encode(*record)));
  EXPECT_EQ(proto.schema(), kSchema);
  const auto again = Decode(Encode(*record));
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(*again == *record);
}

TEST(RecordDecode, RefusesValuesThatMakeNoSense) {
  for (const auto& change : std::initializer_list<void (*)(record::v1::Record&)>{
           [](auto& r) { r.set_schema(0); }, [](auto& r) { r.set_state(99); },
           [](auto& r) { r.set_kind(2); }, [](auto& r) { r.set_id("../x"); },
           [](auto& r) { r.set_namespace_(""); },
           [](auto& r) { r.mutable_execs(0)->set_exec_id("a/b"); }}) {
    record::v1::Record proto;
    ASSERT_TRUE(proto.ParseFromString(Encode(Full())));
    proto.clear_checksum();
    change(proto);
    const auto record = Decode(Seal(proto.SerializeAsString()));
    ASSERT_FALSE(record.has_value());
    EXPECT_EQ(record.error().code, Code::kDataLoss);
  }
}

TEST(RecordDecode, SkipsFieldsOfALaterMinorVersion) {
  record::v1::Record proto;
  ASSERT_TRUE(proto.ParseFromString(Encode(Full())));
  proto.clear_checksum();
  std::string body = proto.SerializeAsString();
  ProtoWriter more;
  more.Bytes(29, "new");
  body += more.str();
  const auto record = Decode(Seal(body));
  ASSERT_TRUE(record.has_value()) << record.error().message;
  EXPECT_TRUE(*record == Full());
}

TEST(Checksum, IsCrc32c) { EXPECT_EQ(Crc32c("123456789"), 0xe3069283U); }

class RecordFileTest : public testing::Test {
 protected:
  void SetUp() override {
    auto dir = os::TempDir::Create();
    ASSERT_TRUE(dir.has_value());
    dir_ = std::move(*dir);
  }

  os::TempDir dir_;
};

TEST_F(RecordFileTest, IsReplacedAsAWhole) {
  Record record = Full();
  record.bundle = dir_.path();
  ASSERT_TRUE(Write(record).has_value());
  record.state = State::kStopped;
  ASSERT_TRUE(Write(record).has_value());
  const auto back = Read(dir_.path());
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->state, State::kStopped);
  EXPECT_THAT(*ListDirectory(dir_.path(), 10), ElementsAre("gantry.record"));
}

TEST_F(RecordFileTest, IsNotFoundWhereThereIsNone) {
  EXPECT_EQ(Read(dir_.path()).error().code, Code::kNotFound);
  EXPECT_TRUE(Remove(dir_.path()).has_value());
  EXPECT_FALSE(Quarantine(dir_.path()).has_value());
}

TEST_F(RecordFileTest, LosesWhatAWriteLeftThatWasKilled) {
  Record record = Full();
  record.bundle = dir_.path();
  ASSERT_TRUE(Write(record).has_value());
  for (const char* name : {"gantry.record.abc.tmp", "gantry.record.bad", "other.tmp"}) {
    ASSERT_TRUE(ReplaceFile(dir_.path() + "/" + name, "x", 0600).has_value());
  }
  RemoveUnfinished(dir_.path());
  RemoveUnfinished(dir_.path() + "/gone");
  EXPECT_THAT(*ListDirectory(dir_.path(), 10),
              UnorderedElementsAre("gantry.record", "gantry.record.bad", "other.tmp"));
}

TEST_F(RecordFileTest, CanBePutAsideWhenItIsBad) {
  ASSERT_TRUE(ReplaceFile(PathOf(dir_.path()), "garbage", 0600).has_value());
  const auto bad = Read(dir_.path());
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().code, Code::kDataLoss);
  EXPECT_THAT(bad.error().message, HasSubstr(dir_.path() + "/gantry.record"));
  const auto path = Quarantine(dir_.path());
  ASSERT_TRUE(path.has_value());
  EXPECT_EQ(*ReadFile(*path, 100), "garbage");
  EXPECT_EQ(Read(dir_.path()).error().code, Code::kNotFound);
}

TEST_F(RecordFileTest, IsNoLargerThanWhatIsRead) {
  Record record = Full();
  record.bundle = dir_.path();
  ASSERT_TRUE(Write(record).has_value());
  Record large = record;
  large.execs.front().spec_json = std::string(kMaxRecordBytes - Encode(record).size() - 64, 'x');
  ASSERT_TRUE(Write(large).has_value());
  EXPECT_EQ(*Read(dir_.path()), large);
  EXPECT_EQ(Write(large, kMaxRecordBytes / 2).error().code, Code::kResourceExhausted);
  large.execs.front().spec_json += std::string(1024, 'x');
  const Status refused = Write(large);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  large.execs.front().spec_json.resize(large.execs.front().spec_json.size() - 1024);
  EXPECT_EQ(*Read(dir_.path()), large) << "what was there";
}

TEST_F(RecordFileTest, FailsWhereTheBundleIsGone) {
  Record record = Full();
  record.bundle = dir_.path() + "/gone";
  EXPECT_EQ(Write(record).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace gantry::store

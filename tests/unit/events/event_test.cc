// SPDX-License-Identifier: Apache-2.0
#include "core/events/event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/containerd/events.pb.h"
#include "proto/containerd/forward.pb.h"

namespace gantry::events {
namespace {

Subject SubjectA() {
  return {"/run/containerd.ttrpc", *Namespace::Parse("k8s.io"), *ContainerId::Parse("a1")};
}

/// The message of `event`, whose type must be `type`.
template <class Message>
Message Decode(const Event& event, std::string_view topic) {
  Message message;
  EXPECT_EQ(event.topic, topic);
  EXPECT_EQ(event.type_url, message.GetTypeName());
  EXPECT_TRUE(message.ParseFromString(event.payload));
  EXPECT_EQ(message.container_id(), "a1");
  EXPECT_NE(event.timestamp_ns, 0);
  return message;
}

constexpr ExitStatus kKilled{137, 1700000000'000000005};

TEST(EventTest, Create) {
  TaskCreateFields fields;
  fields.bundle = "/b";
  fields.rootfs = {{"overlay", "overlay", "", {"index=off", "lowerdir=/l"}},
                   {"bind", "/s", "/t", {}}};
  fields.standard_in = "/in";
  fields.standard_out = "/out";
  fields.standard_err = "/err";
  fields.terminal = true;
  fields.checkpoint = "/c";
  fields.pid = 42;
  const auto message =
      Decode<containerd::events::TaskCreate>(TaskCreate(SubjectA(), fields), "/tasks/create");
  EXPECT_EQ(message.bundle(), "/b");
  ASSERT_EQ(message.rootfs_size(), 2);
  EXPECT_EQ(message.rootfs(0).type(), "overlay");
  EXPECT_EQ(message.rootfs(0).options(1), "lowerdir=/l");
  EXPECT_EQ(message.rootfs(1).source(), "/s");
  EXPECT_EQ(message.rootfs(1).target(), "/t");
  EXPECT_EQ(message.io().stdin(), "/in");
  EXPECT_EQ(message.io().stdout(), "/out");
  EXPECT_EQ(message.io().stderr(), "/err");
  EXPECT_TRUE(message.io().terminal());
  EXPECT_EQ(message.checkpoint(), "/c");
  EXPECT_EQ(message.pid(), 42U);
}

TEST(EventTest, StartExitDelete) {
  using containerd::events::TaskDelete;
  using containerd::events::TaskExit;
  EXPECT_EQ(Decode<containerd::events::TaskStart>(TaskStart(SubjectA(), 42), "/tasks/start").pid(),
            42U);
  const auto init =
      Decode<TaskExit>(events::TaskExit(SubjectA(), ExecId(), 42, kKilled), "/tasks/exit");
  EXPECT_EQ(init.id(), "a1");
  EXPECT_EQ(init.pid(), 42U);
  EXPECT_EQ(init.exit_status(), 137U);
  EXPECT_EQ(init.exited_at().seconds(), 1700000000);
  EXPECT_EQ(init.exited_at().nanos(), 5);
  const auto exec = Decode<TaskExit>(
      events::TaskExit(SubjectA(), *ExecId::Parse("e1"), 43, ExitStatus{}), "/tasks/exit");
  EXPECT_EQ(exec.id(), "e1");
  EXPECT_TRUE(exec.has_exited_at());
  const auto gone =
      Decode<TaskDelete>(events::TaskDelete(SubjectA(), 42, kKilled), "/tasks/delete");
  EXPECT_EQ(gone.id(), "");
  EXPECT_EQ(gone.pid(), 42U);
  EXPECT_EQ(gone.exit_status(), 137U);
  EXPECT_EQ(gone.exited_at().seconds(), 1700000000);
}

TEST(EventTest, TheOthers) {
  namespace pb = containerd::events;
  const ExecId exec = *ExecId::Parse("e1");
  EXPECT_EQ(
      Decode<pb::TaskExecAdded>(TaskExecAdded(SubjectA(), exec), "/tasks/exec-added").exec_id(),
      "e1");
  const auto started =
      Decode<pb::TaskExecStarted>(TaskExecStarted(SubjectA(), exec, 43), "/tasks/exec-started");
  EXPECT_EQ(started.exec_id(), "e1");
  EXPECT_EQ(started.pid(), 43U);
  Decode<pb::TaskOOM>(TaskOom(SubjectA()), "/tasks/oom");
  Decode<pb::TaskPaused>(TaskPaused(SubjectA()), "/tasks/paused");
  Decode<pb::TaskResumed>(TaskResumed(SubjectA()), "/tasks/resumed");
  EXPECT_EQ(Decode<pb::TaskCheckpointed>(TaskCheckpointed(SubjectA(), "/c"), "/tasks/checkpointed")
                .checkpoint(),
            "/c");
}

TEST(EventTest, TheForwardRequest) {
  Event event = TaskStart(SubjectA(), 42);
  event.timestamp_ns = 1700000000'000000009;
  containerd::services::events::ttrpc::v1::ForwardRequest request;
  ASSERT_TRUE(request.ParseFromString(EncodeForward(event)));
  EXPECT_EQ(request.envelope().timestamp().seconds(), 1700000000);
  EXPECT_EQ(request.envelope().timestamp().nanos(), 9);
  EXPECT_EQ(request.envelope().namespace_(), "k8s.io");
  EXPECT_EQ(request.envelope().topic(), "/tasks/start");
  EXPECT_EQ(request.envelope().event().type_url(), "containerd.events.TaskStart");
  EXPECT_EQ(request.envelope().event().value(), event.payload);
}

TEST(EventTest, TimesBefore1970CountForward) {
  gantry::wire::Timestamp time;
  ASSERT_TRUE(time.ParseFromString(EncodeTimestamp(-1)));
  EXPECT_EQ(time.seconds(), -1);
  EXPECT_EQ(time.nanos(), 999999999);
}

TEST(EventTest, SurvivesTheJournal) {
  const Event event = events::TaskExit(SubjectA(), ExecId(), 42, kKilled);
  const auto decoded = DecodeEvent(EncodeEvent(event));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->subject, event.subject);
  EXPECT_EQ(decoded->topic, event.topic);
  EXPECT_EQ(decoded->type_url, event.type_url);
  EXPECT_EQ(decoded->payload, event.payload);
  EXPECT_EQ(decoded->timestamp_ns, event.timestamp_ns);
  EXPECT_EQ(DecodeEvent("").error().code, Code::kDataLoss);
  EXPECT_EQ(DecodeEvent("\x0a\x7f").error().code, Code::kDataLoss);
}

}  // namespace
}  // namespace gantry::events

// SPDX-License-Identifier: Apache-2.0
//
// What a keeper hands to the program that takes its place, as bytes.
#include "core/keeper/state.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <gantry/protowire.h>
#include <gantry/toolkit/descriptors/memfd.h>

#include "core/keeper/frames.h"

namespace gantry::keeper {
namespace {

using testing::HasSubstr;

TEST(KeeperState, IsReadBack) {
  state::Keeper keeper;
  keeper.schema = state::kSchema;
  keeper.run_dir = "/run/x";
  keeper.front_door.connections.resize(2);
  keeper.front_door.connections[1].waiting.push_back(
      {.stream = 3, .payload = "payload", .order = 9, .deadline_ns = 10, .given = true});
  const UniqueFd memfd = *state::Write(keeper);
  const auto back = state::Read(memfd.get());
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->run_dir, "/run/x");
  ASSERT_EQ(back->front_door.connections.size(), 2U);
  EXPECT_EQ(back->front_door.connections[1].waiting.at(0).payload, "payload");
}

std::string Encoded(const std::function<void(ProtoWriter&)>& fill) {
  ProtoWriter out;
  fill(out);
  return out.Take();
}

std::string EarlierFrontDoor() {
  const std::string place = Encoded([](ProtoWriter& out) {
    out.Text(1, "/run/s/abc");
    out.Text(2, "k8s.io");
    out.Text(3, "/run/containerd.sock");
  });
  const std::string waiting = Encoded([](ProtoWriter& out) {
    out.Varint(1, 5);
    out.Text(2, "payload");
    out.Varint(3, 9);
    out.Int(4, std::numeric_limits<int64_t>::max());
    out.Bool(5, true);
    out.Varint(6, 2);
    out.Bool(7, true);
  });
  const std::string listener = Encoded([&](ProtoWriter& out) {
    out.Bytes(1, place);
    out.Varint(2, 11);
  });
  const std::string connection = Encoded([&](ProtoWriter& out) {
    out.Varint(1, 4);
    out.Bytes(3, place);
    out.Bytes(7, waiting);
  });
  return Encoded([&](ProtoWriter& out) {
    out.Bytes(1, listener);
    out.Bytes(2, connection);
  });
}

std::string EarlierSupervisor() {
  return Encoded([](ProtoWriter& out) {
    out.Text(1, "/usr/bin/gantryd");
    out.Text(2, "/old");
    out.Varint(4, 9);
    out.Varint(5, 7);
    out.Varint(6, 1);
    out.Varint(7, 6);
    out.Varint(8, 3);
    out.Bool(9, true);
    out.Bool(10, true);
    out.Text(11, "/new");
    out.Varint(12, 11);
  });
}

/// By number and kind, as every keeper of this schema has written it.
std::string EarlierKeeper() {
  const std::string defaults = Encoded([](ProtoWriter& out) {
    out.Varint(1, 1024);
    out.Varint(2, 4096);
    out.Int(3, -17);
    out.Varint(4, 022);
  });
  const std::string instance = Encoded([](ProtoWriter& out) {
    out.Text(2, "/run/s/abc");
    out.Bool(4, true);
  });
  const std::string instances = Encoded([&](ProtoWriter& out) {
    out.Bytes(1, instance);
    out.Varint(2, 12);
  });
  return "gantry-keeper state\n" + Encoded([&](ProtoWriter& out) {
           out.Varint(1, 1);
           out.Bytes(5, defaults);
           out.Bytes(6, EarlierFrontDoor());
           out.Bytes(7, instances);
           out.Bytes(10, EarlierSupervisor());
         });
}

class EarlierKeeperState : public testing::Test {
 protected:
  void SetUp() override {
    const UniqueFd memfd = *CreateMemfd("state");
    ASSERT_TRUE(WriteAt(memfd.get(), 0, EarlierKeeper()));
    auto read = state::Read(memfd.get());
    ASSERT_TRUE(read) << read.error().message;
    read_ = std::move(*read);
  }

  state::Keeper read_;
};

TEST_F(EarlierKeeperState, HasItsInstancesAndWhatChildrenGet) {
  EXPECT_EQ(read_.child_defaults.open_files.rlim_cur, 1024U);
  EXPECT_EQ(read_.child_defaults.open_files.rlim_max, 4096U);
  EXPECT_EQ(read_.child_defaults.oom_score_adj, -17);
  EXPECT_EQ(read_.child_defaults.umask, mode_t{022});
  ASSERT_EQ(read_.instances.all.size(), 1U);
  EXPECT_EQ(read_.instances.all[0].socket_path, "/run/s/abc");
  EXPECT_TRUE(read_.instances.all[0].member);
  EXPECT_EQ(read_.instances.next, 12U);
}

TEST_F(EarlierKeeperState, HasItsFrontDoor) {
  ASSERT_EQ(read_.front_door.listeners.size(), 1U);
  EXPECT_EQ(read_.front_door.listeners[0].place.path, "/run/s/abc");
  EXPECT_EQ(read_.front_door.listeners[0].fd, 11);
  ASSERT_EQ(read_.front_door.connections.size(), 1U);
  EXPECT_EQ(read_.front_door.connections[0].place.ns, "k8s.io");
  EXPECT_EQ(read_.front_door.connections[0].place.grpc_address, "/run/containerd.sock");
  const Waiting& request = read_.front_door.connections[0].waiting.at(0);
  EXPECT_EQ(request.stream, 5U);
  EXPECT_EQ(request.payload, "payload");
  EXPECT_EQ(request.order, 9U);
  EXPECT_EQ(request.deadline(), async::TimePoint::max());
  EXPECT_TRUE(request.given);
  EXPECT_EQ(request.deaths, 2U);
  EXPECT_TRUE(request.with_engine);
}

TEST_F(EarlierKeeperState, HasItsSupervisor) {
  EXPECT_EQ(read_.supervisor.path, "/usr/bin/gantryd");
  EXPECT_EQ(read_.supervisor.fallback_path, "/old");
  EXPECT_FALSE(read_.supervisor.engine);
  EXPECT_EQ(read_.supervisor.previous_wait_status, 9);
  EXPECT_EQ(read_.supervisor.starts, 7U);
  EXPECT_EQ(read_.supervisor.hangs, 1U);
  EXPECT_EQ(read_.supervisor.generation, 6U);
  EXPECT_EQ(read_.supervisor.failures, 3);
  EXPECT_TRUE(read_.supervisor.said_hello);
  EXPECT_TRUE(read_.supervisor.ever);
  EXPECT_EQ(read_.supervisor.fell_back_from, "/new");
  EXPECT_EQ(read_.supervisor.fell_back_wait_status, 11);
}

TEST(KeeperState, OfALaterSchemaIsRefused) {
  state::Keeper keeper;
  keeper.schema = state::kSchema + 1;
  const auto back = state::Read(state::Write(keeper)->get());
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(back.error().message, HasSubstr("take a later gantry-keeper"));
}

TEST(KeeperState, OfNobodyIsRefused) {
  const UniqueFd memfd = *CreateMemfd("other");
  EXPECT_EQ(state::Read(memfd.get()).error().code, Code::kInvalidArgument);
  ASSERT_TRUE(WriteAt(memfd.get(), 0, "gantry-keeper state\n\xff\xff\xff"));
  EXPECT_EQ(state::Read(memfd.get()).error().code, Code::kInvalidArgument);
}

TEST(KeeperState, OfAFrameGoesOnAtEachByte) {
  const std::string frame = ResponseFrame(7, "some payload");
  for (size_t cut = 0; cut < frame.size(); ++cut) {
    FrameSplitter first;
    const auto none = [](const Frame&) { FAIL(); };
    first.Feed(std::string_view(frame).substr(0, cut), none);
    FrameSplitter second;
    second.Restore(first.Save());
    std::vector<Frame> got;
    second.Feed(frame.substr(cut) + frame, [&](Frame one) { got.push_back(std::move(one)); });
    ASSERT_EQ(got.size(), 2U) << cut;
    EXPECT_EQ(got[0].payload, "some payload");
    EXPECT_EQ(got[1].payload, "some payload");
  }
}

}  // namespace
}  // namespace gantry::keeper

// SPDX-License-Identifier: Apache-2.0
//
// What is written by hand is what proto/gantry/guest/agent.proto says.
#include "plugins/vmm/protocol/messages.h"

#include <string>

#include <gtest/gtest.h>

#include <gantry/toolkit/proto/proto_message.h>

#include "plugins/vmm/protocol/greeting.h"
#include "plugins/vmm/protocol/reports.h"
#include "proto/gantry/guest/agent.pb.h"

namespace gantry::vmm::protocol {
namespace {

namespace wire = guest::v1;

/// Every field of a message gets a value of its own, lists two elements.
struct Filler {
  uint64_t next = 0;

  void operator()(uint32_t /*number*/, std::string& text) { text = "t" + std::to_string(++next); }

  void operator()(uint32_t /*number*/, bool& flag) { flag = true; }

  template <std::integral T>
  void operator()(uint32_t /*number*/, T& number) {
    number = static_cast<T>(++next);
  }

  template <class T>
  void operator()(uint32_t number, std::vector<T>& list) {
    for (int i = 0; i < 2; ++i) {
      (*this)(number, list.emplace_back());
    }
  }

  template <class T>
  void operator()(uint32_t number, std::optional<T>& maybe) {
    (*this)(number, maybe.emplace());
  }

  template <class T>
    requires requires(T& message, Filler& filler) { message.Each(filler); }
  void operator()(uint32_t /*number*/, T& message) {
    message.Each(*this);
  }
};

template <class Ours, class Theirs>
void HoldTogether(const char* name) {
  Ours ours;
  ours.Each(Filler{});
  const std::string bytes = EncodeProto(ours);
  Theirs theirs;
  std::string again;
  ASSERT_TRUE(theirs.ParseFromString(bytes)) << name;
  ASSERT_TRUE(theirs.SerializeToString(&again)) << name;
  // What it does not know it writes last.
  EXPECT_EQ(again, bytes) << name;
  // And what comes twice, twice; of a field that it knows the last counts.
  const std::string twice = bytes + bytes;
  ASSERT_TRUE(theirs.ParseFromString(twice)) << name;
  ASSERT_TRUE(theirs.SerializeToString(&again)) << name;
  const auto back = DecodeProto<Ours>(twice);
  ASSERT_TRUE(back) << name;
  EXPECT_EQ(EncodeProto(*back), again) << name;
}

TEST(GuestMessages, AreThoseOfTheProto) {
  HoldTogether<Envelope, wire::Envelope>("Envelope");
  HoldTogether<Hello, wire::Hello>("Hello");
  HoldTogether<Welcome, wire::Welcome>("Welcome");
  HoldTogether<protocol::SetUp, wire::SetUp>("SetUp");
  HoldTogether<Attach, wire::Attach>("Attach");
  HoldTogether<Detach, wire::Detach>("Detach");
  HoldTogether<CreateContainer, wire::CreateContainer>("CreateContainer");
  HoldTogether<CreateExec, wire::CreateExec>("CreateExec");
  HoldTogether<CreateAnswer, wire::CreateAnswer>("CreateAnswer");
  HoldTogether<Start, wire::Start>("Start");
  HoldTogether<Signal, wire::Signal>("Signal");
  HoldTogether<Pause, wire::Pause>("Pause");
  HoldTogether<Resume, wire::Resume>("Resume");
  HoldTogether<Update, wire::Update>("Update");
  HoldTogether<Stats, wire::Stats>("Stats");
  HoldTogether<StatsAnswer, wire::StatsAnswer>("StatsAnswer");
  HoldTogether<Pids, wire::Pids>("Pids");
  HoldTogether<PidsAnswer, wire::PidsAnswer>("PidsAnswer");
  HoldTogether<Resize, wire::Resize>("Resize");
  HoldTogether<Delete, wire::Delete>("Delete");
  HoldTogether<Online, wire::Online>("Online");
  HoldTogether<OnlineAnswer, wire::OnlineAnswer>("OnlineAnswer");
  HoldTogether<Forward, wire::Forward>("Forward");
  HoldTogether<ListAnswer, wire::ListAnswer>("ListAnswer");
  HoldTogether<Exited, wire::Exited>("Exited");
  HoldTogether<OutOfMemory, wire::OutOfMemory>("OutOfMemory");
  HoldTogether<LogLine, wire::LogLine>("LogLine");
}

TEST(GuestMessages, OfANewerSideAreReadWithoutWhatIsNotKnown) {
  ProtoWriter out;
  out.Bytes(1, "c");
  out.Bytes(77, "new");
  out.Varint(78, 1);
  const auto start = DecodeProto<Start>(out.str());
  ASSERT_TRUE(start);
  EXPECT_EQ(start->container, "c");
}

TEST(GuestMessages, ThatAreMalformedAreRefused) {
  for (const std::string& bytes :
       {std::string("\x0a\xff", 2), std::string("\x08\x01", 2), std::string("\x0b", 1)}) {
    EXPECT_EQ(DecodeProto<Start>(bytes).error().code, Code::kInvalidArgument);
  }
  std::string many;
  for (size_t i = 0; i <= proto_message::kMaxElements; ++i) {
    many += std::string("\x0a\x00", 2);
  }
  EXPECT_FALSE(DecodeProto<PidsAnswer>(many)) << "a list without end";
}

}  // namespace
}  // namespace gantry::vmm::protocol

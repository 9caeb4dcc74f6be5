// SPDX-License-Identifier: Apache-2.0
//
// gantry-vsock with a real guest: what Linux's own driver and QEMU make of it.
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/format.h>

#include "tests/vmm/vsock/streams_guest.h"

namespace gantry::vmm {
namespace {

constexpr uint32_t kEcho = 5000;
constexpr uint32_t kSource = 5001;
constexpr uint32_t kSink = 5002;
constexpr uint32_t kReturn = 5003;
constexpr uint32_t kDial = 5004;
constexpr uint32_t kHalfSource = 5005;

std::string BytesOf(auto value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }

std::string Pattern(size_t size) {
  std::string data(size, '\0');
  unsigned state = 1;
  for (char& one : data) {
    state = state * 1664525 + 1013904223;
    one = static_cast<char>(state >> 24);
  }
  return data;
}

/// One guest for all tests of a run.
class VmmVsock : public testing::Test {
 protected:
  static void TearDownTestSuite() { machine_.reset(); }

  void SetUp() override {
    if (const TestImage& image = TestImage::Get(); !image.why_not.empty()) {
      GTEST_SKIP() << image.why_not;
    }
    // One that does not boot is not tried again for each test.
    static auto booted = StreamsGuest::Boot(VsockProgram::kOurs);
    ASSERT_TRUE(booted) << booted.error().message;
    if (*booted) {
      machine_ = std::move(*booted);
    }
  }

  void TearDown() override {
    if (HasFailure() && machine_ != nullptr) {
      ADD_FAILURE() << machine_->guest().Words();
    }
  }

  static void ExpectEchoes(const UniqueFd& socket) {
    ASSERT_TRUE(WriteTo(socket.get(), "hello"));
    EXPECT_EQ(ReadFrom(socket.get(), 5).value_or(""), "hello");
  }

  static void ExpectServes() {
    const auto socket = machine_->Dial(kEcho);
    ASSERT_TRUE(socket) << socket.error().message;
    ExpectEchoes(*socket);
  }

  static inline std::unique_ptr<StreamsGuest> machine_;
};

TEST_F(VmmVsock, BothSidesDial) { ExpectServes(); }

TEST_F(VmmVsock, TheHostsHalfCloseLosesNothing) {
  const auto socket = machine_->Dial(kReturn);
  ASSERT_TRUE(socket);
  const std::string data = Pattern(5 << 20);
  ASSERT_TRUE(WriteTo(socket->get(), data));
  ASSERT_EQ(shutdown(socket->get(), SHUT_WR), 0);
  const auto back = ReadToEnd(socket->get());
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_TRUE(*back == data) << back->size();
}

TEST_F(VmmVsock, TheGuestsHalfCloseLosesNothing) {
  const auto socket = machine_->Dial(kHalfSource);
  ASSERT_TRUE(socket);
  const auto data = ReadToEnd(socket->get());
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->size(), 1U << 20);
  // The other half is open still.
  ASSERT_TRUE(WriteTo(socket->get(), Pattern(3 << 20)));
  ASSERT_EQ(shutdown(socket->get(), SHUT_WR), 0);
  const auto report = AwaitConnection(machine_->reports(), Soon());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(ReadFrom(report->get(), 8).value_or(""), BytesOf(uint64_t{3 << 20}));
}

TEST_F(VmmVsock, AGuestIsRefusedWhereNobodyListens) {
  const auto socket = machine_->Dial(kDial);
  ASSERT_TRUE(socket);
  ASSERT_TRUE(WriteTo(socket->get(), BytesOf(uint32_t{4444})));
  // Not ETIMEDOUT. Linux has this one for a reset. Source: Linux 6.12,
  // net/vmw_vsock/virtio_transport_common.c, virtio_transport_recv_connecting.
  EXPECT_EQ(ReadFrom(socket->get(), 4).value_or(""), BytesOf(int32_t{ECONNRESET}));
}

TEST_F(VmmVsock, AHostIsRefusedWhereNobodyListens) {
  const auto socket = machine_->Dial(4444);
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, Code::kUnavailable);
}

TEST_F(VmmVsock, HasHundredsOfStreams) {
  std::vector<UniqueFd> sockets;
  for (int i = 0; i < 320; ++i) {
    auto socket = machine_->Dial(kEcho);
    ASSERT_TRUE(socket) << i << ": " << socket.error().message;
    sockets.push_back(std::move(*socket));
  }
  for (size_t i = 0; i < sockets.size(); ++i) {
    ASSERT_TRUE(WriteTo(sockets[i].get(), Format("{:08}", i)));
  }
  for (size_t i = 0; i < sockets.size(); ++i) {
    EXPECT_EQ(ReadFrom(sockets[i].get(), 8).value_or(""), Format("{:08}", i));
  }
}

TEST_F(VmmVsock, WhoDoesNotReadHoldsUpNobody) {
  const auto to_host = machine_->Dial(kSource);
  ASSERT_TRUE(to_host);
  ASSERT_TRUE(WriteTo(to_host->get(), BytesOf(uint64_t{8 << 20})));
  // Nobody reads it; and this one's guest reads no more than what it was told of.
  const auto to_guest = machine_->Dial(kDial);
  ASSERT_TRUE(to_guest);
  ASSERT_TRUE(WriteTo(to_guest->get(), BytesOf(uint32_t{4444})));
  for (int i = 0; i < 20; ++i) {
    ExpectServes();
  }
  const auto rest = ReadFrom(to_host->get(), 8 << 20);
  EXPECT_TRUE(rest) << rest.error().message;
}

TEST_F(VmmVsock, MuchGoesBothWaysAtOnce) {
  const auto out = machine_->Dial(kSource);
  const auto in = machine_->Dial(kSink);
  ASSERT_TRUE(out && in);
  constexpr uint64_t kMuch = 24 << 20;
  ASSERT_TRUE(WriteTo(out->get(), BytesOf(kMuch)));
  ASSERT_TRUE(WriteTo(in->get(), BytesOf(kMuch)));
  const std::string data = Pattern(1 << 20);
  for (uint64_t moved = 0; moved < kMuch; moved += data.size()) {
    ASSERT_TRUE(WriteTo(in->get(), data));
    ASSERT_TRUE(ReadFrom(out->get(), data.size()));
  }
  EXPECT_EQ(ReadFrom(in->get(), 8).value_or(""), BytesOf(kMuch));
}

TEST_F(VmmVsock, HostsThatLeaveBeforeTheAnswerHarmNobody) {
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(machine_->BeginToDial(kEcho));
  }
  ExpectServes();
}

TEST_F(VmmVsock, HostsThatLeaveInTheMiddleHarmNobody) {
  for (int i = 0; i < 20; ++i) {
    const auto socket = machine_->Dial(i % 2 == 0 ? kSource : kSink);
    ASSERT_TRUE(socket);
    ASSERT_TRUE(WriteTo(socket->get(), BytesOf(uint64_t{8 << 20})));
    if (i % 2 == 0) {
      ASSERT_TRUE(ReadFrom(socket->get(), 100'000));
    } else {
      ASSERT_TRUE(WriteTo(socket->get(), Pattern(100'000)));
    }
  }
  ExpectServes();
}

TEST_F(VmmVsock, StreamsOutliveAPause) {
  const auto socket = machine_->Dial(kEcho);
  ASSERT_TRUE(socket);
  ExpectEchoes(*socket);
  ASSERT_TRUE(machine_->guest().vm().Pause(Soon()));
  ASSERT_TRUE(WriteTo(socket->get(), "hello"));
  ASSERT_TRUE(machine_->guest().vm().Resume(Soon()));
  EXPECT_EQ(ReadFrom(socket->get(), 5).value_or(""), "hello");
  ExpectEchoes(*socket);
}

/// As after the restore of a template, which has no such device.
TEST(VmmVsockHotAdded, ServesAGuestThatGetsItLater) {
  if (const TestImage& image = TestImage::Get(); !image.why_not.empty()) {
    GTEST_SKIP() << image.why_not;
  }
  const auto booted = StreamsGuest::Boot(VsockProgram::kOurs, true);
  ASSERT_TRUE(booted) << booted.error().message;
  StreamsGuest& machine = **booted;
  const auto socket = machine.Dial(kEcho);
  ASSERT_TRUE(socket) << socket.error().message;
  ASSERT_TRUE(WriteTo(socket->get(), "hello"));
  EXPECT_EQ(ReadFrom(socket->get(), 5).value_or(""), "hello");
  // With its machine it ends.
  ASSERT_TRUE(machine.guest().vm().Kill(Soon()));
  const auto ended = machine.guest().vsock().process().Wait(std::chrono::minutes(1));
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->code(), 0U);
}

}  // namespace
}  // namespace gantry::vmm

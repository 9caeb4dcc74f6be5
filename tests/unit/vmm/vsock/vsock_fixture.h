// SPDX-License-Identifier: Apache-2.0
//
// A device with its loop, a guest and hosts, all in one thread: each turn is the test's.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/os/fs.h"
#include "plugins/vmm/vsock/server.h"
#include "tests/unit/vmm/vsock/guest.h"
#include "tests/unit/vmm/vsock/guest_driver.h"
#include "tests/unit/vmm/vsock/host_end.h"

namespace gantry::vmm::vsock {

/// The server's time, which stands still unless a test moves it.
inline uint64_t g_now_ms = 1000;

class VsockTest : public testing::Test {
 protected:
  void Open(DriverSettings driver = {}, size_t streams = kMaxStreams, bool reconnects = false) {
    path_ = dir_.path() + "/v";
    front_end_path_ = dir_.path() + "/front";
    server_.emplace(
        ServerSettings{.front_ends = *ListenUnix(front_end_path_),
                       .hosts = *ListenUnix(path_),
                       .device = {.guest_cid = 3, .name = path_, .most_streams = streams},
                       .reconnects = reconnects,
                       .now_ms = [] { return g_now_ms; }});
    ASSERT_TRUE(server_->Open());
    driver_settings_ = driver;
    Plug();
  }

  /// Another front end, with a guest of its own.
  void Plug() {
    driver_ = std::make_unique<GuestDriver>(*ConnectUnix(front_end_path_), driver_settings_,
                                            [this] { Turn(); });
    guest_.emplace(*driver_);
  }

  void Boot(DriverSettings driver = {}, size_t streams = kMaxStreams, bool reconnects = false) {
    Open(driver, streams, reconnects);
    ASSERT_TRUE(driver_->Bring());
  }

  bool Turn() { return server_->Turn(0); }

  /// A turn of everybody.
  void Step() {
    Turn();
    guest_->Poll();
  }

  /// So many turns that all that can happen without anybody's doing has happened.
  void Settle() {
    constexpr int kTurns = 50;
    for (int i = 0; i < kTurns; ++i) {
      Step();
    }
  }

  template <class Condition>
  bool Eventually(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
      Step();
    }
    return true;
  }

  UniqueFd Listen(uint32_t port) { return *ListenUnix(Format("{}_{}", path_, port)); }

  /// Both ends of a stream that the guest has dialled.
  std::pair<GuestSocket*, HostEnd> DialOut(const UniqueFd& listener, uint32_t port) {
    GuestSocket& socket = guest_->Dial(port);
    HostEnd end;
    EXPECT_TRUE(Eventually([&] {
      end = end ? std::move(end) : HostEnd::Accept(listener);
      return end && socket.is_open;
    }));
    return {&socket, std::move(end)};
  }

  /// Both ends of a stream that the host has dialled.
  std::pair<GuestSocket*, HostEnd> DialIn(uint32_t port) {
    guest_->Listen(port);
    HostEnd end = HostEnd::Connect(path_);
    end.Write(Format("CONNECT {}\n", port));
    std::string answer;
    EXPECT_TRUE(Eventually([&] {
      if (!answer.ends_with('\n')) {
        answer += end.Read(1);
      }
      return answer.ends_with('\n');
    }));
    GuestSocket* const socket = guest_->accepted().back();
    EXPECT_EQ(answer, Format("OK {}\n", socket->ports.host));
    return {socket, std::move(end)};
  }

  static std::string Pattern(size_t size, unsigned seed = 1) {
    std::string data(size, '\0');
    for (char& one : data) {
      seed = seed * 1664525 + 1013904223;
      one = static_cast<char>(seed >> 24);
    }
    return data;
  }

  /// Moves all of `data` from the guest to the host, and says what arrives.
  std::string ToHost(GuestSocket& socket, HostEnd& end, std::string_view data) {
    std::string arrived;
    const size_t size = data.size();
    EXPECT_TRUE(Eventually([&] {
      data.remove_prefix(guest_->Write(socket, data));
      arrived += end.Read();
      return arrived.size() >= size;
    }));
    return arrived;
  }

  std::string ToGuest(HostEnd& end, GuestSocket& socket, std::string_view data) {
    std::string arrived;
    const size_t size = data.size();
    EXPECT_TRUE(Eventually([&] {
      data.remove_prefix(data.empty() ? 0 : end.Write(data));
      arrived += guest_->Read(socket);
      return arrived.size() >= size;
    }));
    return arrived;
  }

  /// Both directions of a stream work.
  void ExpectCarries(GuestSocket& socket, HostEnd& end) {
    EXPECT_EQ(ToHost(socket, end, "question"), "question");
    EXPECT_EQ(ToGuest(end, socket, "answer"), "answer");
  }

  os::TempDir dir_ = *os::TempDir::Create();
  std::string path_;
  std::string front_end_path_;
  std::optional<Server> server_;
  DriverSettings driver_settings_;
  std::unique_ptr<GuestDriver> driver_;
  std::optional<Guest> guest_;
};

}  // namespace gantry::vmm::vsock

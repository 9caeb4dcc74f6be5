// SPDX-License-Identifier: Apache-2.0
//
// The program itself: what it may do, and how it ends.
#include "tests/unit/vmm/vsock/program.h"

#include <poll.h>
#include <sys/stat.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "plugins/vmm/vsock/arguments.h"
#include "tests/unit/vmm/vsock/guest.h"
#include "tests/unit/vmm/vsock/guest_driver.h"
#include "tests/unit/vmm/vsock/host_end.h"

namespace gantry::vmm::vsock {
namespace {

class VsockProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root to change a root directory";
    }
  }

  void Start(const std::vector<std::string>& more = {}) {
    program_.emplace(GANTRY_VSOCK, dir_.path(), more);
    Plug();
  }

  void Plug() {
    // What the other process does is waited for, a little at a time.
    driver_.emplace(*ConnectUnix(dir_.path() + "/front"), DriverSettings{},
                    [] { poll(nullptr, 0, 1); });
    guest_.emplace(*driver_);
  }

  template <class Condition>
  bool Eventually(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
      guest_->Poll();
      poll(nullptr, 0, 1);
    }
    return true;
  }

  void ExpectCarries() {
    GuestSocket& socket = guest_->Dial(1025);
    HostEnd end;
    ASSERT_TRUE(Eventually([&] {
      end = end ? std::move(end) : HostEnd::Accept(listener_);
      return end && socket.is_open;
    }));
    guest_->Write(socket, "question");
    std::string heard;
    EXPECT_TRUE(Eventually([&] { return (heard += end.Read()) == "question"; }));
    end.Write("answer");
    EXPECT_TRUE(Eventually([&] { return socket.received == "answer"; }));
  }

  os::TempDir dir_ = *os::TempDir::Create();
  UniqueFd listener_ = *ListenUnix(dir_.path() + "/v_1025");
  std::optional<Program> program_;
  std::optional<GuestDriver> driver_;
  std::optional<Guest> guest_;
};

TEST_F(VsockProgram, ServesAndEndsWithItsFrontEnd) {
  Start();
  ASSERT_TRUE(driver_->Bring());
  ExpectCarries();
  driver_->Leave();
  EXPECT_EQ(program_->Wait(), 0);
}

TEST_F(VsockProgram, MayDoNoMoreThanItNeeds) {
  Start();
  ASSERT_TRUE(driver_->Bring());
  ExpectCarries();
  const std::string proc = Format("/proc/{}", program_->pid());
  const std::string status = ReadFile(proc + "/status", 65536).value_or("");
  for (const char* line : {"\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n", "\nCapPrm:\t0000000000000000\n",
                           "\nCapEff:\t0000000000000000\n", "\nCapInh:\t0000000000000000\n"}) {
    EXPECT_NE(status.find(line), std::string::npos) << line << status;
  }
  struct stat root{};
  struct stat own{};
  ASSERT_EQ(stat((proc + "/root").c_str(), &root), 0);
  ASSERT_EQ(stat(dir_.path().c_str(), &own), 0);
  EXPECT_EQ(root.st_ino, own.st_ino);
  EXPECT_EQ(root.st_dev, own.st_dev);
}

TEST_F(VsockProgram, WaitsForAnotherFrontEndWhereItIsTold) {
  Start({"--reconnect", "--streams=3"});
  ASSERT_TRUE(driver_->Bring());
  ExpectCarries();
  Plug();
  ASSERT_TRUE(driver_->Bring());
  ExpectCarries();
}

TEST_F(VsockProgram, SaysWhichWordIsWrong) {
  for (const auto& [word, message] : std::vector<std::pair<std::string, std::string>>{
           {"--front-end=x", "'--front-end=x': not a number from 3 to 2147483647"},
           {"--front-end=2", "'--front-end=2': not a number from 3 to 2147483647"},
           {"--hosts=1000000", "'--hosts=1000000': not an open descriptor"},
           {"--name=a/b", "'--name=a/b': not the name of a socket, of at most 80 bytes"},
           {"--name=", "'--name=': not the name of a socket, of at most 80 bytes"},
           {"--guest-cid=2", "'--guest-cid=2': not a number from 3 to 4294967294"},
           {"--streams=0", "'--streams=0': not a number from 1 to 1024"},
           {"--streams=1025", "'--streams=1025': not a number from 1 to 1024"},
           {"--what", "'--what': not known"},
           {"--reconnect", "'--front-end' is missing"}}) {
    const auto read = ReadArguments({word});
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().message, "read arguments: " + message);
    EXPECT_EQ(read.error().code, Code::kInvalidArgument);
  }
  Program wrong(GANTRY_VSOCK, dir_.path(), {"--what"});
  const int status = wrong.Wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << status;
}

}  // namespace
}  // namespace gantry::vmm::vsock

// SPDX-License-Identifier: Apache-2.0
//
// What the engine is given of words and config.json.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

#include "tests/unit/wasm/program/guest_fixture.h"

namespace gantry::wasm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using RequestTest = GuestTest;

TEST_F(RequestTest, HasArgumentsAndEnvironmentOfTheSpecAndNoOther) {
  EXPECT_EQ(Run("request", {.script = "x"}),
            "kind 0 entry none memory 0 network 1 listener no\n"
            "arg sh\narg -c\narg x\nenv PATH=/bin\nenv A=b\n"
            "directory / at / rw\nexit 0");
}

TEST_F(RequestTest, TellsTheWorkingDirectoryByPwd) {
  EXPECT_THAT(Run("request", {.cwd = "/tmp"}), HasSubstr("\nenv PWD=/tmp\n"));
}

TEST_F(RequestTest, HasWhatTheWordsSay) {
  EXPECT_THAT(
      Run("request", {}, {"--kind=module", "--entry=run", "--memory=65536", "--network=none"}),
      StartsWith("kind 0 entry run memory 65536 network 0 listener no\n"));
  EXPECT_THAT(Run("request", {}, {"--kind=command"}), StartsWith("kind 1 entry none memory 0"));
}

TEST_F(RequestTest, RefusesWordsThatSayNothing) {
  EXPECT_THAT(Run("request", {}, {}),
              StartsWith("INVALID_ARGUMENT: read arguments: no --artifact, "));
  EXPECT_THAT(Run("request", {}, {"--kind=command", "--entry=run"}),
              StartsWith("INVALID_ARGUMENT: read arguments: --entry='run': only of a module"));
  for (const char* const wrong : {"--kind=native", "--memory=-1", "--memory=0", "--memory=64Mi",
                                  "--network=host", "--entry=", "--artifact=99", "--other=1"}) {
    EXPECT_THAT(Run("request", {}, {wrong}),
                StartsWith("INTERNAL: make process 'init/c1': gantry-wasm has ended"))
        << wrong;
  }
}

TEST_F(RequestTest, EachMountThatIsNotAsWhatIsAboveItIsADirectory) {
  const container::Config config = {
      .mounts = R"({"destination": "/tmp/", "type": "tmpfs", "source": "tmpfs",
                      "options": ["ro"]},
                   {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["rw"]},
                   {"destination": "/etc/passwd", "type": "bind", "source": "rootfs/etc/passwd",
                    "options": ["bind", "ro"]})"};
  EXPECT_THAT(Run("request", config),
              HasSubstr("directory / at / rw\ndirectory /tmp at /tmp ro\nexit 0"));
}

// A free port, which nobody else gets while it lives.
class Port {
 public:
  Port() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(fd_.get(), 1), 0);
    EXPECT_EQ(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    text_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }

  const std::string& text() const { return text_; }

 private:
  UniqueFd fd_;
  std::string text_;
};

TEST_F(RequestTest, AProxyListens) {
  const container::Config of_its_own = {
      .namespaces = R"([{"type": "pid"}, {"type": "mount"}, {"type": "network"}])"};
  EXPECT_THAT(Run("request\ndescriptors", of_its_own, {"--kind=proxy"}),
              AllOf(StartsWith("kind 2 entry none memory 0 network 1 listener yes\n"),
                    HasSubstr("\n 0 1 2 3\nexit 0")));
  EXPECT_THAT(Run("request", of_its_own, {"--kind=proxy", "--listen=[::1]:81000"}),
              StartsWith("INVALID_ARGUMENT: listen at '[::1]:81000': not ADDRESS:PORT"));
  EXPECT_THAT(Run("request", of_its_own, {"--kind=proxy", "--listen=localhost:80"}),
              StartsWith("INVALID_ARGUMENT: listen at 'localhost:80': not ADDRESS:PORT"));
}

TEST_F(RequestTest, SaysWhereSomebodyElseListens) {
  const Port taken;
  EXPECT_EQ(Run("request", {}, {"--kind=proxy", "--listen=" + taken.text()}),
            Format("FAILED_PRECONDITION: listen at '{}': another one listens there in the "
                   "container's network",
                   taken.text()));
}

}  // namespace
}  // namespace gantry::wasm

// SPDX-License-Identifier: Apache-2.0
//
// gantry-keeper becomes another program. Here without an engine that lives; with one and
// with containers: tests/contract/keeper_upgrade_test.cc.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <gantry/format.h>
#include <gantry/protowire.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "core/keeper/frames.h"
#include "core/keeper/state.h"
#include "core/link/channel.h"
#include "core/os/process.h"
#include "core/os/spawn.h"
#include "tests/unit/keeper/keeper_process.h"

namespace gantry::keeper {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class KeeperReexec : public KeeperProcessTest {
 protected:
  KeeperReexec() { StartKeeper("/bin/false"); }

  Result<link::KeeperStatus> Status() { return Ask<link::KeeperStatus>(link::Query{}); }

  Result<link::KeeperUpgraded> Become(const std::string& program) {
    return Ask<link::KeeperUpgraded>(link::UpgradeKeeper{program});
  }

  /// A program that does what a shell is told by `text`.
  std::string Program(const std::string& text) {
    std::string path = dir_.path() + "/program-" + std::to_string(++programs_);
    std::filesystem::copy_file(GANTRY_FAKE_KEEPER, path);
    EXPECT_EQ(chmod(path.c_str(), 0755), 0);
    EXPECT_TRUE(ReplaceFile(path + ".sh", text + "\n", 0644));
    return path;
  }

  /// Announces `id`; a connection to its socket.
  UniqueFd ConnectTo(const std::string& id) {
    link::Announce announce;
    announce.id = id;
    announce.ns = "default";
    const auto announced = Ask<link::Announced>(announce);
    EXPECT_TRUE(announced);
    return *ConnectUnix(announced->address.substr(std::string("unix://").size()));
  }

  static std::string ReadAll(const UniqueFd& socket, size_t bytes) {
    std::string all;
    pollfd wanted{socket.get(), POLLIN, 0};
    while (all.size() < bytes && poll(&wanted, 1, 20'000) == 1) {
      char buffer[4096];
      const ssize_t got = recv(socket.get(), buffer, sizeof(buffer), 0);
      if (got <= 0) {
        break;
      }
      all.append(buffer, static_cast<size_t>(got));
    }
    return all;
  }

 private:
  int programs_ = 0;
};

TEST_F(KeeperReexec, IsTheSameProcessWithAllItHeld) {
  const UniqueFd silent = ConnectTo("c1");
  const auto before = Status();
  ASSERT_TRUE(before);
  const auto upgraded = Become(GANTRY_KEEPER);
  ASSERT_TRUE(upgraded) << upgraded.error().message;
  EXPECT_EQ(upgraded->keeper_pid, keeper_.process.pid);
  const auto after = Status();
  ASSERT_TRUE(after);
  EXPECT_EQ(after->keeper_upgrades, 1U);
  EXPECT_EQ(after->keeper_pid, keeper_.process.pid);
  EXPECT_EQ(after->started_at_ns, before->started_at_ns);
  ASSERT_EQ(after->instances.size(), 1U);
  EXPECT_EQ(after->instances.front().announce.id, "c1");
  EXPECT_EQ(after->connections, 1U);
  EXPECT_EQ(after->sockets, 2U);
  EXPECT_GE(after->engine_starts, before->engine_starts);
  EXPECT_TRUE(Become(GANTRY_KEEPER));
  EXPECT_EQ(Status()->keeper_upgrades, 2U);
}

TEST_F(KeeperReexec, KeepsTheLockAndTheLog) {
  ASSERT_TRUE(Become(GANTRY_KEEPER));
  os::SpawnRequest request;
  request.argv = {GANTRY_KEEPER, "--check", "--run-dir", dir_.path() + "/run"};
  const os::SpawnResult check = *os::SpawnProcess(request);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(check.process.pid), &info, WEXITED), 0);
  EXPECT_EQ(info.si_status, 1);
  EXPECT_THAT(*ReadFile(dir_.path() + "/run/keeper.log", 65536),
              HasSubstr("took over from another program"));
}

TEST_F(KeeperReexec, LeavesNoDescriptorBehind) {
  ASSERT_TRUE(Become(GANTRY_KEEPER));
  const auto count = [&] {
    const std::filesystem::path fds = "/proc/" + std::to_string(keeper_.process.pid) + "/fd";
    return std::distance(std::filesystem::directory_iterator(fds), {});
  };
  const auto once = count();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Become(GANTRY_KEEPER));
  }
  // The last question's connection may just be closed.
  for (int look = 0; look < 5000 && count() > once; ++look) {
    poll(nullptr, 0, 1);
  }
  EXPECT_LE(count(), once);
}

/// A request whose client gives up after a second, cut in two by the change of programs.
TEST_F(KeeperReexec, GoesOnInTheMiddleOfARequest) {
  const UniqueFd client = ConnectTo("c1");
  ProtoWriter request;
  request.Text(1, "containerd.task.v2.Task");
  request.Text(2, "State");
  request.Int(4, 1'000'000'000);
  std::string frame = ResponseFrame(1, request.Take());
  frame[8] = static_cast<char>(kFrameRequest);
  for (size_t cut = 1; cut < frame.size(); cut += 9) {
    frame[7] = static_cast<char>(2 * cut + 1);
    ASSERT_EQ(send(client.get(), frame.data(), cut, 0), static_cast<ssize_t>(cut));
    ASSERT_TRUE(Become(GANTRY_KEEPER));
    ASSERT_GT(send(client.get(), frame.data() + cut, frame.size() - cut, 0), 0);
  }
  ASSERT_TRUE(Become(GANTRY_KEEPER));
  std::vector<uint32_t> answered;
  FrameSplitter in;
  in.Feed(ReadAll(client, kFrameHeaderBytes), [&](Frame answer) {
    answered.push_back(answer.stream);
    EXPECT_THAT(answer.payload, HasSubstr("context deadline exceeded"));
  });
  EXPECT_FALSE(answered.empty());
}

TEST_F(KeeperReexec, RefusesWhatIsNoKeeper) {
  for (const std::string& program :
       {std::string("/bin/true"), dir_.path() + "/absent", dir_.path(), Program("exit 3"),
        Program("echo gantry-keeper understands")}) {
    SCOPED_TRACE(program);
    const auto refused = Become(program);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
    EXPECT_THAT(refused.error().message, HasSubstr(program));
  }
  const std::string script = dir_.path() + "/script";
  ASSERT_TRUE(ReplaceFile(script, "#!/bin/sh\n", 0755));
  EXPECT_THAT(Become(script).error().message, HasSubstr("it is no ELF program"));
  EXPECT_EQ(Become("gantry-keeper").error().code, Code::kInvalidArgument);
  EXPECT_EQ(Status()->keeper_upgrades, 0U);
  EXPECT_TRUE(Become(GANTRY_KEEPER));
}

TEST_F(KeeperReexec, StaysWhenTheProgramDoesNotUnderstand) {
  const auto refused =
      Become(Program("printf 'gantry-keeper refuses: only of schema 0' > /proc/self/fd/3"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("only of schema 0"));
  EXPECT_TRUE(Status());
}

TEST_F(KeeperReexec, ExecutesWhatItHasCheckedAndNotWhatIsThereByThen) {
  const std::string path = Program("");
  const std::string ran = dir_.path() + "/ran";
  ASSERT_TRUE(ReplaceFile(path + ".sh",
                          "case \"$1\" in\n"
                          "--check-state-fd=*)\n"
                          "  /bin/cp /bin/false '" +
                              path +
                              ".new'\n"
                              "  /bin/mv '" +
                              path + ".new' '" + path +
                              "'\n"
                              "  printf 'gantry-keeper understands\\n' > /proc/self/fd/3;;\n"
                              "*)\n"
                              "  echo the checked one > '" +
                              ran +
                              "'\n"
                              "  exec '" GANTRY_KEEPER "' \"$@\";;\n"
                              "esac\n",
                          0644));
  const auto upgraded = Become(path);
  ASSERT_TRUE(upgraded) << upgraded.error().message;
  EXPECT_EQ(ReadFile(ran, 100).value_or(""), "the checked one\n");
  EXPECT_EQ(Status()->keeper_upgrades, 1U);
}

TEST_F(KeeperReexec, HasItsNameAfterwards) {
  ASSERT_TRUE(Become(GANTRY_KEEPER));
  EXPECT_EQ(ReadFile(Format("/proc/{}/comm", keeper_.process.pid), 100).value_or(""),
            "gantry-keeper\n");
}

/// Started as by a keeper, with a state that it cannot take.
TEST(KeeperTakeOver, GoesBackToThePreviousProgram) {
  const UniqueFd memfd = *CreateMemfd("other");
  const UniqueFd previous(open("/bin/true", O_PATH | O_CLOEXEC));
  const auto code_with = [&](const std::vector<std::string>& more) {
    os::SpawnRequest request;
    request.argv = {GANTRY_KEEPER, "--state-fd=3"};
    request.argv.insert(request.argv.end(), more.begin(), more.end());
    request.descriptors = {{memfd.get(), 3}, {previous.get(), 4}};
    const os::SpawnResult child = *os::SpawnProcess(request);
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(child.process.pid), &info, WEXITED);
    return info.si_status;
  };
  EXPECT_EQ(code_with({}), 1);
  EXPECT_EQ(code_with({"--previous-fd=4"}), 0);
}

}  // namespace
}  // namespace gantry::keeper

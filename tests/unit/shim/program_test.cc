// SPDX-License-Identifier: Apache-2.0
//
// The shim as a program, with the real keeper, as containerd runs it.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <gantry/protowire.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/link/channel.h"
#include "core/link/record_peek.h"
#include "core/os/fs.h"
#include "core/os/process.h"
#include "core/shim/keeper_client.h"

namespace gantry::shim {
namespace {

using namespace std::chrono_literals;

struct Output {
  int status = -1;
  std::string out;
  std::string err;
};

/// A program whose stdout and stderr are read to their ends, as containerd does.
class Running {
 public:
  Running(const std::vector<std::string>& argv, const std::vector<std::string>& env,
          const std::string& cwd, const std::string& input = "") {
    int out[2];
    int err[2];
    int in[2];
    EXPECT_EQ(pipe2(out, O_CLOEXEC) + pipe2(err, O_CLOEXEC) + pipe2(in, O_CLOEXEC), 0);
    out_.reset(out[0]);
    err_.reset(err[0]);
    const UniqueFd out_end(out[1]);
    const UniqueFd err_end(err[1]);
    const UniqueFd in_end(in[0]);
    UniqueFd writer(in[1]);
    os::SpawnRequest request;
    request.argv = argv;
    request.env = env;
    request.cwd = cwd;
    request.descriptors = {{in_end.get(), 0}, {out_end.get(), 1}, {err_end.get(), 2}};
    child_ = *os::SpawnProcess(request);
    EXPECT_EQ(write(writer.get(), input.data(), input.size()), static_cast<ssize_t>(input.size()));
  }

  Output Finish() {
    Output output;
    output.out = ReadToEnd(out_);
    output.err = ReadToEnd(err_);
    waitpid(child_.process.pid, &output.status, 0);
    return output;
  }

 private:
  /// Gives up after 20 s: then some other process holds the pipe.
  static std::string ReadToEnd(const UniqueFd& fd) {
    std::string text;
    char buffer[4096];
    while (true) {
      pollfd wanted{fd.get(), POLLIN, 0};
      if (poll(&wanted, 1, 20'000) <= 0) {
        ADD_FAILURE() << "the pipe stays open";
        return text;
      }
      const ssize_t got = read(fd.get(), buffer, sizeof(buffer));
      if (got <= 0) {
        return text;
      }
      text.append(buffer, static_cast<size_t>(got));
    }
  }

  UniqueFd out_;
  UniqueFd err_;
  os::SpawnResult child_;
};

class ShimProgram : public testing::Test {
 protected:
  ShimProgram() : dir_(*os::TempDir::Create()), bundle_(dir_.path() + "/bundle") {
    EXPECT_TRUE(os::MakeDirs(bundle_, 0700));
    // The engine is no part of these tests: one that ends at once will do.
    const std::string libexec = dir_.path() + "/libexec";
    EXPECT_TRUE(os::MakeDirs(libexec, 0700));
    EXPECT_EQ(symlink("/bin/false", (libexec + "/gantryd").c_str()), 0);
    EXPECT_EQ(symlink(GANTRY_KEEPER, (libexec + "/gantry-keeper").c_str()), 0);
    env_ = {"PATH=/usr/bin:/bin", "GANTRY_RUN_DIR=" + RunDir(), "GANTRY_LIBEXEC_DIR=" + libexec};
  }

  ~ShimProgram() override {
    if (const auto status = Query()) {
      kill(status->keeper_pid, SIGKILL);
    }
  }

  std::string RunDir() const { return dir_.path() + "/run"; }

  Result<link::KeeperStatus> Query() const {
    GANTRY_TRY(UniqueFd socket, ConnectKeeper(RunDir()));
    link::BlockingChannel channel(std::move(socket));
    return channel.Ask<link::KeeperStatus>(link::Query{}, std::chrono::steady_clock::now() + 10s);
  }

  std::vector<std::string> Argv(const std::string& id, const std::string& action) const {
    return {GANTRY_SHIM,       "-namespace", "default", "-address", "/run/c.sock",
            "-publish-binary", "/c",         "-id",     id,         action};
  }

  Output Run(const std::string& id, const std::string& action, const std::string& input = "") {
    return Running(Argv(id, action), env_, bundle_, input).Finish();
  }

  os::TempDir dir_;
  std::string bundle_;
  std::vector<std::string> env_;
};

TEST_F(ShimProgram, StartsTheKeeperAndPrintsAnAddressThatListens) {
  const Output output = Run("a", "start");
  EXPECT_EQ(output.status, 0);
  EXPECT_EQ(output.err, "");
  ASSERT_TRUE(output.out.starts_with("unix://" + RunDir() + "/s/")) << output.out;
  EXPECT_TRUE(ConnectUnix(output.out.substr(7)));
  EXPECT_EQ(*ReadFile(bundle_ + "/address", 1000), output.out);
}

TEST_F(ShimProgram, AHundredAtOnceShareOneKeeper) {
  std::vector<std::unique_ptr<Running>> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(std::make_unique<Running>(Argv("c" + std::to_string(i), "start"), env_, bundle_));
  }
  std::set<std::string> addresses;
  for (const auto& one : all) {
    const Output output = one->Finish();
    EXPECT_EQ(output.status, 0);
    EXPECT_EQ(output.err, "");
    addresses.insert(output.out);
  }
  EXPECT_EQ(addresses.size(), 100U);
  const auto status = Query();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->instances.size(), 100U);
}

TEST_F(ShimProgram, ReachesAKeeperThatRunsFromWhereverItLies) {
  ASSERT_EQ(Run("a", "start").status, 0);
  // containerd may be told to execute it by an absolute path, under any name.
  const std::string copy = dir_.path() + "/elsewhere/runtime";
  ASSERT_TRUE(os::MakeDirs(dir_.path() + "/elsewhere", 0700));
  std::filesystem::copy_file(GANTRY_SHIM, copy);
  std::vector<std::string> argv = Argv("b", "start");
  argv[0] = copy;
  const std::vector<std::string> env = {"PATH=/usr/bin:/bin", "GANTRY_RUN_DIR=" + RunDir()};
  const Output output = Running(argv, env, bundle_).Finish();
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_TRUE(output.out.starts_with("unix://" + RunDir() + "/s/")) << output.out;
  EXPECT_EQ(Query()->instances.size(), 2U);
}

TEST_F(ShimProgram, NamesAllPlacesWhereTheKeepersProgramIsNot) {
  const std::string copy = dir_.path() + "/elsewhere/runtime";
  ASSERT_TRUE(os::MakeDirs(dir_.path() + "/elsewhere", 0700));
  std::filesystem::copy_file(GANTRY_SHIM, copy);
  std::vector<std::string> argv = Argv("b", "start");
  argv[0] = copy;
  const std::vector<std::string> env = {"PATH=/usr/bin:/bin", "GANTRY_RUN_DIR=" + RunDir()};
  if (access(GANTRY_INSTALLED_LIBEXEC "/gantry-keeper", X_OK) == 0) {
    GTEST_SKIP() << "gantry is installed here";
  }
  const Output output = Running(argv, env, bundle_).Finish();
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, testing::HasSubstr("find program 'gantry-keeper'"));
  EXPECT_THAT(output.err, testing::HasSubstr(dir_.path() + "/elsewhere'"));
  EXPECT_THAT(output.err, testing::HasSubstr(GANTRY_INSTALLED_LIBEXEC));
}

TEST_F(ShimProgram, RefusesARunDirectoryOfSomebodyElse) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root gives directories away";
  }
  ASSERT_TRUE(os::MakeDirs(RunDir(), 0700));
  ASSERT_EQ(chown(RunDir().c_str(), 12345, 0), 0);
  const Output output = Run("a", "start");
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, testing::HasSubstr("owned by uid 12345"));
  EXPECT_FALSE(Exists(RunDir() + "/keeper.sock"));
  ASSERT_EQ(chown(RunDir().c_str(), 0, 0), 0);
  EXPECT_EQ(Run("a", "start").status, 0);
}

TEST_F(ShimProgram, ReplacesTheSocketOfADeadKeeper) {
  ASSERT_EQ(Run("a", "start").status, 0);
  const pid_t first = Query()->keeper_pid;
  const auto pidfd = OpenPidfd({first, 0});
  ASSERT_EQ(kill(first, SIGKILL), 0);
  pollfd gone{pidfd->get(), POLLIN, 0};
  ASSERT_EQ(poll(&gone, 1, 10'000), 1);
  EXPECT_EQ(Run("b", "start").status, 0);
  EXPECT_NE(Query()->keeper_pid, first);
}

TEST_F(ShimProgram, TellsWhatItWasGiven) {
  env_.emplace_back("MAX_SHIM_VERSION=2");
  env_.emplace_back("TTRPC_ADDRESS=/t.sock");
  std::ofstream(bundle_ + "/config.json")
      << R"({"annotations":{"io.kubernetes.cri.sandbox-id":"pod"}})";
  ProtoWriter any;
  any.Text(1, "runtimeoptions.v1.Options");
  any.Text(2, "bytes");
  const Output output = Run("a", "start", any.str());
  EXPECT_THAT(output.out, testing::StartsWith(R"({"version":2,"address":"unix://)"));
  const auto status = Query();
  ASSERT_EQ(status->instances.size(), 1U);
  const link::Announce& announce = status->instances[0].announce;
  EXPECT_EQ(announce.group, "pod");
  EXPECT_EQ(announce.bundle, bundle_);
  EXPECT_EQ(announce.grpc_address, "/run/c.sock");
  EXPECT_EQ(announce.ttrpc_address, "/t.sock");
  EXPECT_EQ(announce.containerd_binary, "/c");
  EXPECT_EQ(announce.options_type_url, "runtimeoptions.v1.Options");
  EXPECT_EQ(announce.options, "bytes");
  EXPECT_EQ(announce.rlimits, link::OwnRlimits()) << "as its parent has them";
}

/// The fields of a DeleteResponse.
std::vector<uint64_t> Numbers(const std::string& bytes) {
  std::vector<uint64_t> numbers;
  ProtoReader in(bytes);
  while (in.Next()) {
    numbers.push_back(in.number());
  }
  return numbers;
}

/// A runtime's options as containerd sends them with `-info`.
std::string AnyOf(const std::string& type, const std::string& value) {
  ProtoWriter any;
  any.Text(1, type);
  any.Bytes(2, value);
  return any.Take();
}

TEST_F(ShimProgram, InfoTellsWhatTheEnginesProgramSaysOfTheHandler) {
  const std::string program = dir_.path() + "/libexec/gantryd";
  ASSERT_TRUE(RemoveFile(program));
  std::ofstream(program) << "#!/bin/sh\n"
                            "printf '{\"asked\": \"%s %s\"}\\n' \"$*\" \"$(cat)\"\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const std::string shim = dir_.path() + "/containerd-shim-gantry-fast-v1";
  ASSERT_EQ(symlink(GANTRY_SHIM, shim.c_str()), 0);
  const Output output =
      Running({shim, "-info"}, env_, bundle_, AnyOf("a/runc.Options", "x y")).Finish();
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_THAT(output.out,
              testing::HasSubstr(
                  R"({"asked": "--features --handler fast --options-type a/runc.Options x y"})"));
  EXPECT_FALSE(Exists(RunDir()));
}

TEST_F(ShimProgram, InfoPromisesNothingThatItCannotFindOut) {
  const std::string program = dir_.path() + "/libexec/gantryd";
  for (const std::string body : {"exit 1", "printf '{\"mountOptions\": [\"rro\"'; kill $$",
                                 "echo 'read configuration: \"rro\"'", ""}) {
    ASSERT_TRUE(RemoveFile(program));
    if (!body.empty()) {
      std::ofstream(program) << "#!/bin/sh\n" << body << "\n";
      std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    }
    const Output output = Running({GANTRY_SHIM, "-info"}, env_, bundle_).Finish();
    EXPECT_EQ(output.status, 0) << output.err;
    EXPECT_THAT(output.out, testing::HasSubstr(R"("idmap":{"enabled":false})")) << body;
    EXPECT_THAT(output.out, testing::Not(testing::HasSubstr("mountOptions"))) << body;
    EXPECT_THAT(output.out, testing::HasSubstr("io.gantry.features.unknown")) << body;
  }
}

TEST_F(ShimProgram, DeleteWithoutAKeeperStartsNone) {
  const Output output = Run("a", "delete");
  EXPECT_EQ(output.status, 0);
  EXPECT_EQ(output.err, "");
  EXPECT_THAT(Numbers(output.out), testing::ElementsAre(0xffffffffU, 137U, 0U));
  EXPECT_FALSE(Query());
}

TEST_F(ShimProgram, DeleteWithoutAKeeperKillsByTheRecord) {
  os::SpawnRequest sleeper;
  sleeper.argv = {"/bin/sleep", "60"};
  const auto child = os::SpawnProcess(sleeper);
  ASSERT_TRUE(child);
  link::RecordPeek peek;
  peek.init_pid = child->process.pid;
  peek.start_time = child->process.start_time;
  ProtoWriter record;
  record.Bytes(link::kPeekField, EncodeProto(peek));
  ASSERT_TRUE(ReplaceFile(bundle_ + "/gantry.record", record.str(), 0600));
  const Output output = Run("a", "delete");
  EXPECT_THAT(Numbers(output.out),
              testing::ElementsAre(static_cast<uint64_t>(child->process.pid), 137U, 0U));
  int status = 0;
  ASSERT_EQ(waitpid(child->process.pid, &status, 0), child->process.pid);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST_F(ShimProgram, DeleteWithoutAKeeperRunsTheCommandOnRecord) {
  const std::string log = dir_.path() + "/log";
  link::RecordPeek peek;
  peek.cleanup =
      link::Command{{"/bin/sh", "-c", "echo noise; pwd >>" + log}, {"PATH=/usr/bin:/bin"}, bundle_};
  ProtoWriter record;
  record.Bytes(link::kPeekField, EncodeProto(peek));
  ASSERT_TRUE(ReplaceFile(bundle_ + "/gantry.record", record.str(), 0600));
  const Output output = Run("a", "delete");
  EXPECT_EQ(output.status, 0);
  EXPECT_EQ(output.err, "");
  EXPECT_THAT(Numbers(output.out), testing::ElementsAre(0xffffffffU, 137U, 0U));
  EXPECT_EQ(ReadFile(log, 4096).value_or(""), bundle_ + "\n");
}

TEST_F(ShimProgram, DeleteGivesTheStatusOfTheRecord) {
  link::RecordPeek peek;
  peek.init_pid = 4'000'000;
  peek.start_time = 1;
  peek.exit_status = 7;
  ProtoWriter record;
  record.Bytes(link::kPeekField, EncodeProto(peek));
  ASSERT_TRUE(ReplaceFile(bundle_ + "/gantry.record", record.str(), 0600));
  EXPECT_THAT(Numbers(Run("a", "delete").out), testing::ElementsAre(4'000'000U, 7U, 0U));
}

TEST_F(ShimProgram, DeleteRemovesTheSocket) {
  const std::string address = Run("a", "start").out;
  ASSERT_EQ(Run("a", "delete").status, 0);
  EXPECT_FALSE(Exists(address.substr(7)));
}

TEST_F(ShimProgram, SaysOneLineWhenItFails) {
  env_[2] = "GANTRY_LIBEXEC_DIR=/nowhere";
  const Output output = Run("a", "start");
  EXPECT_NE(output.status, 0);
  EXPECT_EQ(output.out, "");
  EXPECT_THAT(output.err, testing::StartsWith("gantry: find program 'gantry-keeper'"));
  EXPECT_EQ(std::ranges::count(output.err, '\n'), 1);
}

TEST_F(ShimProgram, TellsThatTheKeeperEnded) {
  ASSERT_EQ(unlink((dir_.path() + "/libexec/gantry-keeper").c_str()), 0);
  ASSERT_EQ(symlink("/bin/false", (dir_.path() + "/libexec/gantry-keeper").c_str()), 0);
  const Output output = Run("a", "start");
  EXPECT_NE(output.status, 0);
  EXPECT_THAT(output.err, testing::HasSubstr("keeper"));
}

}  // namespace
}  // namespace gantry::shim

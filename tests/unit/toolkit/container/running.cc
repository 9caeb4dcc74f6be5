// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/toolkit/container/running.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::container {
namespace {

/// Starts crun. Not with /dev/null: it gives what is its standard input to the container's user.
pid_t StartCrun(const Bundle& bundle, std::vector<std::string> words, int input, int output) {
  const std::string state = bundle.path() + "/state";
  words.insert(words.begin(), {"crun", "--root", state});
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(input, 0);
    ::dup2(output, 1);
    ::dup2(output, 2);
    ::execvp("crun", argv.data());
    ::_exit(127);
  }
  return pid;
}

/// How crun ends, whose container may hold its streams; what it has written is shown when it fails.
void RunCrun(const Bundle& bundle, std::vector<std::string> words) {
  const std::string log = bundle.path() + "/crun.log";
  const auto input = MakeBlockingPipe();
  const UniqueFd output(::open(log.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  ASSERT_TRUE(input && output);
  EXPECT_EQ(EndOf(StartCrun(bundle, std::move(words), input->first.get(), output.get())), "exit 0")
      << ReadFile(log, 64 << 10).value_or("");
}

}  // namespace

Running::Running(const Bundle& bundle, Config config)
    : bundle_(bundle), config_(std::move(config)), id_("joined-" + std::to_string(::getpid())) {
  config_.script = "exec sleep 100000";
  std::ofstream(bundle_.path() + "/config.json") << Bundle::TextOf(config_);
  const std::string pid_file = bundle_.path() + "/pid";
  RunCrun(bundle_, {"run", "--detach", "--bundle", bundle_.path(), "--pid-file", pid_file, id_});
  std::ifstream(pid_file) >> init_;
  pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, init_, 0)));
  EXPECT_TRUE(static_cast<bool>(pidfd_)) << "crun's container does not run";
}

Running::~Running() { RunCrun(bundle_, {"delete", "--force", id_}); }

Result<JoinRequest> Running::RequestOf(const Config& process) const {
  JoinRequest request;
  GANTRY_TRY(request.spec, oci::ParseSpec(Bundle::TextOf(config_), "config.json"));
  GANTRY_TRY(request.process, oci::ParseProcess(Bundle::ProcessOf(process)));
  request.bundle = bundle_.path();
  request.id = id_;
  request.init = pidfd_.get();
  return request;
}

std::string Running::Join(const Config& process) const {
  auto request = RequestOf(process);
  if (!request) {
    return request.error().message;
  }
  auto seen = MakeBlockingPipe();
  const auto given = MakeBlockingPipe();
  EXPECT_TRUE(seen && given);
  request->streams = {given->first.get(), seen->second.get(), seen->second.get()};
  auto made = container::Join(*request);
  seen->second.reset();
  const Status started = made ? made->Start() : Status(std::unexpected(made.error()));
  if (!started) {
    return Format("{}: {}", CodeName(started.error().code), started.error().message);
  }
  std::string text = Drain(seen->first.get());
  return text + EndOf(made->pid());
}

std::string Running::JoinByCrun(const Config& process) const {
  const std::string file = bundle_.path() + "/process.json";
  std::ofstream(file) << Bundle::ProcessOf(process);
  auto seen = MakeBlockingPipe();
  const auto given = MakeBlockingPipe();
  EXPECT_TRUE(seen && given);
  const pid_t pid =
      StartCrun(bundle_, {"exec", "--process", file, id_}, given->first.get(), seen->second.get());
  seen->second.reset();
  std::string text = Drain(seen->first.get());
  return text + EndOf(pid);
}

}  // namespace gantry::container

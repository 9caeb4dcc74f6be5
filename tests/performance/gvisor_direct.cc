// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/gvisor_direct.h"

#include <fcntl.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include <gantry/format.h>

namespace gantry::bench {
namespace {

Deadline Soon() { return Clock::now() + std::chrono::seconds(30); }

}  // namespace

/// On two connections, as a start and a wait have to be.
Status GvisorDirect::ExecOnce() {
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) {
    return FailErrno(errno, "open '/dev/null'");
  }
  const std::array<int, 3> fds = {null.get(), null.get(), null.get()};
  const std::string start = Format(
      R"({{"filename":"","argv":["/bin/true"],"envv":["PATH=/bin"],"wd":"/","KUID":0,"KGID":0,)"
      R"("Capabilities":null,"StdioIsPty":false,"GuestFDs":[0,1,2],"ContainerID":"{}"}})",
      container_);
  const auto pid =
      client_.Call({.method = "containerManager.ExecuteAsync", .arg = start, .fds = fds}, Soon());
  if (!pid) {
    return std::unexpected(urpc::ToError(pid.error()));
  }
  const std::string wait = Format(R"({{"PID":{},"CID":"{}"}})", pid->result, container_);
  auto asked = client_.Begin({.method = "containerManager.WaitPID", .arg = wait}, Soon());
  const auto end = asked ? asked->Receive("containerManager.WaitPID", Soon())
                         : urpc::Outcome<urpc::Answer>(std::unexpected(asked.error()));
  if (!end) {
    return std::unexpected(urpc::ToError(end.error()));
  }
  return end->result == "0"
             ? Status()
             : Fail(Code::kInternal, "exec 'true' directly: it ended with {}", end->result);
}

Status GvisorDirect::Exec(Phases& phases) {
  const auto begin = Clock::now();
  GANTRY_CHECK_OK(ExecOnce());
  phases.Add(kDirectly, MillisecondsSince(begin));
  return {};
}

Result<double> GvisorDirect::ExecMany(int count, int at_once) {
  std::vector<Status> ends(static_cast<size_t>(at_once));
  std::atomic<int> left = count;
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (Status& end : ends) {
      threads.emplace_back([&] {
        while (end && left-- > 0) {
          end = ExecOnce();
        }
      });
    }
  }
  const double took = MillisecondsSince(begin);
  for (const Status& end : ends) {
    GANTRY_CHECK_OK(end);
  }
  return took;
}

Status GvisorDirect::Ask(const std::string& method, const std::string& arg, Phases& phases) {
  const auto begin = Clock::now();
  const auto answer = client_.Call({.method = method, .arg = arg}, Soon());
  if (!answer) {
    return std::unexpected(urpc::ToError(answer.error()));
  }
  phases.Add(kDirectly, MillisecondsSince(begin));
  return {};
}

Status GvisorDirect::Stats(Phases& phases) {
  return Ask("containerManager.Event", Format("\"{}\"", container_), phases);
}

Status GvisorDirect::Kill(Phases& phases) {
  return Ask("containerManager.Signal",
             Format(R"({{"CID":"{}","Signo":{},"PID":0,"Mode":0}})", container_, SIGWINCH), phases);
}

}  // namespace gantry::bench

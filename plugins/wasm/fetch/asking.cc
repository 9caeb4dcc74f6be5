// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/asking.h"

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/process/rights.h>
#include <gantry/toolkit/process/spawn_builder.h>

#include "plugins/wasm/fetch/answer.h"

namespace gantry::wasm::fetch {
namespace {

using std::chrono::milliseconds;

// gRPC's libraries and threads reserve much more than they use.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr rlim_t kAddressSpace = RLIM_INFINITY;  // A sanitizer reserves terabytes.
#else
constexpr rlim_t kAddressSpace = rlim_t{2} << 30;
#endif
constexpr rlim_t kProcessorSeconds = 60;
constexpr rlim_t kDescriptors = 64;
constexpr milliseconds kDying = std::chrono::seconds(2);

rlimit LimitOf(rlim_t value) { return {value, value}; }

void Confine(SpawnRequest& request, uint64_t max_bytes) {
  // A UNIX socket that has a path is reached from every network namespace.
  request.new_namespaces = CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS;
  request.uid = 0;
  request.gid = 0;
  request.capabilities = 0;
  request.no_new_privs = true;
  request.rlimits = {{RLIMIT_AS, LimitOf(kAddressSpace)},
                     {RLIMIT_FSIZE, LimitOf(max_bytes)},
                     {RLIMIT_CPU, LimitOf(kProcessorSeconds)},
                     {RLIMIT_NOFILE, LimitOf(kDescriptors)},
                     {RLIMIT_CORE, LimitOf(0)}};
}

/// The process, and where its answer comes.
struct Asked {
  std::shared_ptr<HostProcess> process;
  UniqueFd answer;
};

Result<Asked> Ask(SandboxContext& context, const UniqueFd& program, const Call& call,
                  milliseconds limit) {
  Asked asked;
  GANTRY_TRY(auto ends, MakePipe());
  asked.answer = std::move(ends.first);
  GANTRY_CHECK_OK(SetNonblocking(ends.second.get(), false));
  GANTRY_TRY(UniqueFd output, call.output.Duplicate());
  SpawnBuilder builder;
  builder.Add("--address=" + call.address);
  builder.Add(call.words);
  // Less than it is waited for, so that it says itself what took so long.
  builder.Add(Format("--limit-ms={}", std::max<int64_t>(limit.count() * 9 / 10, 1)));
  builder.AddFd("result", std::move(ends.second));
  builder.AddFd(call.output_word, std::move(output));
  GANTRY_TRY(SpawnRequest request, builder.Finish(kFetchName, program));
  Confine(request, call.max_bytes);
  GANTRY_TRY(asked.process, context.Spawn(std::move(request)));
  return asked;
}

/// All that comes through the pipe until its end.
Result<std::string> ReadToEnd(const UniqueFd& fd, Deadline deadline, const Call& call) {
  std::string text;
  std::array<char, 4096> buffer = {};
  for (;;) {
    pollfd one = {fd.get(), POLLIN, 0};
    const int ready = ::poll(&one, 1, PollTimeout(deadline));
    if (ready == 0) {
      return Fail(Code::kDeadlineExceeded,
                  "ask containerd at '{}' for {}: {} has not answered in time", call.address,
                  call.wanted, kFetchName);
    }
    const ssize_t got = ready < 0 ? -1 : ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno != EINTR && errno != EAGAIN) {
      return FailErrno(errno, "read the answer of {}", kFetchName);
    }
    if (got == 0) {
      return text;
    }
    text.append(buffer.data(), got < 0 ? 0 : static_cast<size_t>(got));
    if (text.size() > kMaxAnswerBytes) {
      return Fail(Code::kInternal, "read the answer of {}: more than {} bytes", kFetchName,
                  kMaxAnswerBytes);
    }
  }
}

std::string HowItEnded(const Result<WaitStatus>& ended) {
  return ended ? Format("exit code {}", ended->code()) : ended.error().message;
}

}  // namespace

Result<std::string> AskFetch(SandboxContext& context, const UniqueFd& program, const Call& call) {
  const milliseconds limit = std::min(call.limit, context.TimeLeft());
  const Deadline deadline = std::chrono::steady_clock::now() + limit;
  GANTRY_TRY(const Asked asked, Ask(context, program, call, limit));
  auto text = ReadToEnd(asked.answer, deadline, call);
  // With its answer it is done: its end tells something only where there is none.
  const bool silent = text && text->empty();
  const std::string how = silent ? HowItEnded(asked.process->Wait(kDying)) : std::string();
  if (Status ended = EndProcess(asked.process.get(), kDying); !ended) {
    context.Log(LogLevel::kWarning, Format("end {}: {}", kFetchName, ended.error().message));
  }
  if (silent) {
    return Fail(Code::kInternal, "run {}: it has ended without an answer: {}", kFetchName, how);
  }
  return text;
}

}  // namespace gantry::wasm::fetch

// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/image.h"

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
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/process/rights.h>
#include <gantry/toolkit/process/spawn_builder.h>

#include "plugins/wasm/fetch/answer.h"
#include "plugins/wasm/fetch/digest.h"

namespace gantry::wasm::fetch {
namespace {

using std::chrono::milliseconds;

constexpr const char* kName = "gantry-wasm-fetch";
// gRPC's libraries and threads reserve much more than they use.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr rlim_t kAddressSpace = RLIM_INFINITY;  // A sanitizer reserves terabytes.
#else
constexpr rlim_t kAddressSpace = rlim_t{2} << 30;
#endif
constexpr rlim_t kProcessorSeconds = 60;
constexpr rlim_t kDescriptors = 64;
constexpr size_t kPart = 256 << 10;
constexpr milliseconds kDying = std::chrono::seconds(2);

rlimit LimitOf(rlim_t value) { return {value, value}; }

/// The process, its answer and its module.
struct Asked {
  std::shared_ptr<HostProcess> process;
  UniqueFd answer;
  UniqueFd module;
};

SpawnBuilder WordsFor(const ImageQuestion& question, milliseconds limit) {
  SpawnBuilder builder;
  builder.Add("--address=" + question.address);
  builder.Add("--namespace=" + question.ns);
  builder.Add("--container=" + question.container);
  builder.Add("--program=" + question.program);
  builder.Add(Format("--max-bytes={}", question.max_bytes));
  // Less than it is waited for, so that it says itself what took so long.
  builder.Add(Format("--limit-ms={}", std::max<int64_t>(limit.count() * 9 / 10, 1)));
  return builder;
}

void Confine(SpawnRequest& request, const ImageQuestion& question) {
  // A UNIX socket that has a path is reached from every network namespace.
  request.new_namespaces = CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS;
  request.uid = 0;
  request.gid = 0;
  request.capabilities = 0;
  request.no_new_privs = true;
  request.rlimits = {{RLIMIT_AS, LimitOf(kAddressSpace)},
                     {RLIMIT_FSIZE, LimitOf(question.max_bytes)},
                     {RLIMIT_CPU, LimitOf(kProcessorSeconds)},
                     {RLIMIT_NOFILE, LimitOf(kDescriptors)},
                     {RLIMIT_CORE, LimitOf(0)}};
}

Result<Asked> Ask(SandboxContext& context, const UniqueFd& program, const ImageQuestion& question,
                  milliseconds limit) {
  Asked asked;
  GANTRY_TRY(auto ends, MakePipe());
  asked.answer = std::move(ends.first);
  GANTRY_CHECK_OK(SetNonblocking(ends.second.get(), false));
  GANTRY_TRY(asked.module, CreateSealableMemfd("wasm-module", MemfdUse::kRead));
  GANTRY_TRY(UniqueFd module, asked.module.Duplicate());
  SpawnBuilder builder = WordsFor(question, limit);
  builder.AddFd("result", std::move(ends.second));
  builder.AddFd("module", std::move(module));
  GANTRY_TRY(SpawnRequest request, builder.Finish(kName, program));
  Confine(request, question);
  GANTRY_TRY(asked.process, context.Spawn(std::move(request)));
  return asked;
}

/// All that comes through the pipe until its end.
Result<std::string> ReadToEnd(const UniqueFd& fd, Deadline deadline, const std::string& address) {
  std::string text;
  std::array<char, 4096> buffer = {};
  for (;;) {
    pollfd one = {fd.get(), POLLIN, 0};
    const int ready = ::poll(&one, 1, PollTimeout(deadline));
    if (ready == 0) {
      return Fail(Code::kDeadlineExceeded,
                  "ask containerd at '{}' for the module of an image: {} has not answered in time",
                  address, kName);
    }
    const ssize_t got = ready < 0 ? -1 : ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno != EINTR && errno != EAGAIN) {
      return FailErrno(errno, "read the answer of {}", kName);
    }
    if (got == 0) {
      return text;
    }
    text.append(buffer.data(), got < 0 ? 0 : static_cast<size_t>(got));
    if (text.size() > kMaxAnswerBytes) {
      return Fail(Code::kInternal, "read the answer of {}: more than {} bytes", kName,
                  kMaxAnswerBytes);
    }
  }
}

/// Of a file that nobody changes any more.
Result<Sha256Digest> Sum(const UniqueFd& file, uint64_t size) {
  Sha256 sum;
  for (uint64_t at = 0; at < size; at += kPart) {
    GANTRY_TRY(const std::string part, ReadAt(file.get(), at, kPart));
    sum.Add(part);
  }
  return sum.Finish();
}

/// What was written, if it is what the answer says.
Result<ModuleBytes> TakeModule(const UniqueFd& written, const Blob& told) {
  GANTRY_CHECK_OK(SealMemfd(written.get()));
  ModuleBytes module;
  GANTRY_TRY(module.size, FileSize(written.get()));
  GANTRY_TRY(module.file, ReopenForReading(written));
  if (module.size == told.size) {
    GANTRY_TRY(module.digest, Sum(module.file, module.size));
  }
  const std::string is = DigestText(module.digest);
  if (module.size != told.size || is != told.digest) {
    return Fail(Code::kInternal, "take the module from {}: it gave {} bytes, {}, and says {}, {}",
                kName, module.size, is, told.size, told.digest.substr(0, 100));
  }
  return module;
}

std::string HowItEnded(const Result<WaitStatus>& ended) {
  return ended ? Format("exit code {}", ended->code()) : ended.error().message;
}

}  // namespace

Result<FoundImage> FindImageModule(SandboxContext& context, const UniqueFd& program,
                                   const ImageQuestion& question) {
  const milliseconds limit = std::min(question.limit, context.TimeLeft());
  const Deadline deadline = std::chrono::steady_clock::now() + limit;
  GANTRY_TRY(const Asked asked, Ask(context, program, question, limit));
  auto text = ReadToEnd(asked.answer, deadline, question.address);
  // With its answer it is done: its end tells something only where there is none.
  const bool silent = text && text->empty();
  const std::string how = silent ? HowItEnded(asked.process->Wait(kDying)) : std::string();
  if (Status ended = EndProcess(asked.process.get(), kDying); !ended) {
    context.Log(LogLevel::kWarning, Format("end {}: {}", kName, ended.error().message));
  }
  GANTRY_CHECK_OK(text);
  if (silent) {
    return Fail(Code::kInternal, "run {}: it has ended without an answer: {}", kName, how);
  }
  GANTRY_TRY(const ImageAnswer answer, ReadAnswer(*text));
  FoundImage found{answer.platform, answer.layers.size(), std::nullopt};
  if (answer.module) {
    GANTRY_TRY(found.module, TakeModule(asked.module, *answer.module));
  }
  return found;
}

}  // namespace gantry::wasm::fetch

// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/start_hooks.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/toolkit/container/join.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/oci/json.h>
#include <gantry/toolkit/process/pidfd.h>

namespace gantry::vmm::guest {
namespace {

/// Less than the host waits for an answer (`kStep` in container/pod.cc).
constexpr std::chrono::seconds kTogether{45};
constexpr size_t kMostHooks = 32;
constexpr size_t kMaxWords = 1024;

struct Hook {
  std::string name;
  std::vector<std::string> args;
  std::vector<std::string> env;
  std::chrono::seconds timeout = kTogether;
};

Result<Hook> ReadHook(const oci::Json& json) {
  GANTRY_CHECK_OK(json.CheckObject());
  Hook hook;
  std::string path;
  GANTRY_CHECK_OK(json["path"].Read(path));
  if (!path.starts_with('/')) {
    return json["path"].Wrong("must be absolute");
  }
  GANTRY_CHECK_OK(json["args"].Read(hook.args));
  GANTRY_CHECK_OK(json["env"].Read(hook.env));
  // The maker finds a program by the first of them.
  hook.args.resize(std::max<size_t>(hook.args.size(), 1));
  hook.args.front() = path;
  std::optional<int64_t> timeout;
  GANTRY_CHECK_OK(json["timeout"].Read(timeout));
  if (timeout && *timeout <= 0) {
    return json["timeout"].Wrong("must be a number of seconds above 0");
  }
  hook.timeout = std::chrono::seconds(
      std::min<int64_t>(timeout.value_or(kTogether.count()), kTogether.count()));
  hook.name = Format("run hook '{}' (startContainer)", path);
  return hook;
}

Result<std::vector<Hook>> ReadHooks(const oci::Json& config) {
  GANTRY_TRY(const std::vector<oci::Json> all, config["hooks"]["startContainer"].Items());
  if (all.size() > kMostHooks) {
    return config["hooks"]["startContainer"].Wrong(Format("must be at most {}", kMostHooks));
  }
  std::vector<Hook> hooks;
  for (const oci::Json& one : all) {
    GANTRY_TRY(Hook hook, ReadHook(one));
    hooks.push_back(std::move(hook));
  }
  return hooks;
}

/// Its process's number is that in its own pid namespace, as runc says it.
std::string StateOf(const HookedContainer& container, const oci::Json& config) {
  const std::string annotations = config["annotations"].Text();
  return Format(
      R"({{"ociVersion":"1.2.0","id":{},"status":"created","pid":1,"bundle":{},"annotations":{}}})",
      oci::Quote(container.id), oci::Quote(container.bundle),
      annotations.empty() ? "{}" : annotations);
}

std::string WordsIn(const UniqueFd& said) {
  const uint64_t size = FileSize(said.get()).value_or(0);
  std::string words =
      ReadAt(said.get(), size - std::min<uint64_t>(size, kMaxWords), kMaxWords).value_or("");
  while (words.ends_with('\n')) {
    words.pop_back();
  }
  return words.empty() ? "it has said nothing" : words;
}

/// The status of wait(2); none: it runs on.
std::optional<int> Await(const container::MadeProcess& process, Deadline deadline) {
  pollfd ended = {.fd = process.pidfd().get(), .events = POLLIN, .revents = 0};
  while (poll(&ended, 1, PollTimeout(deadline)) < 0 && errno == EINTR) {
  }
  int status = 0;
  return waitpid(process.pid(), &status, WNOHANG) == process.pid() ? std::optional(status)
                                                                   : std::nullopt;
}

Status RunToItsEnd(container::JoinRequest request, Deadline deadline) {
  GANTRY_TRY(const UniqueFd said, CreateMemfd("hook"));
  request.streams.at(1) = said.get();
  request.streams.at(2) = said.get();
  GANTRY_TRY(auto process, container::Join(std::move(request)));
  GANTRY_CHECK_OK(process.Start());
  const std::optional<int> status = Await(process, deadline);
  if (!status) {
    KillProcess(process.pidfd());
    waitpid(process.pid(), nullptr, 0);
    return Fail(Code::kDeadlineExceeded, "it has not ended in its time: {}", WordsIn(said));
  }
  if (WIFSIGNALED(*status)) {
    return Fail(Code::kInternal, "it was ended by signal {}: {}", WTERMSIG(*status), WordsIn(said));
  }
  if (WEXITSTATUS(*status) != 0) {
    return Fail(Code::kInternal, "it ended with status {}: {}", WEXITSTATUS(*status),
                WordsIn(said));
  }
  return {};
}

Status Run(const Hook& hook, const HookedContainer& container, const std::string& state,
           Deadline together) {
  GANTRY_TRY(const UniqueFd input, SealedMemfd("state", state, MemfdUse::kRead));
  container::JoinRequest request;
  request.spec = container.spec;
  request.bundle = container.bundle;
  request.id = container.id;
  request.init = container.init;
  request.process = container.spec.process;
  request.process.args = hook.args;
  request.process.env = hook.env;
  request.process.terminal = false;
  request.streams.front() = input.get();
  const Deadline deadline = std::min(together, std::chrono::steady_clock::now() + hook.timeout);
  Status ran = RunToItsEnd(std::move(request), deadline);
  return ran ? ran : std::unexpected(std::move(ran).error().Within(hook.name));
}

}  // namespace

Status RunStartHooks(const HookedContainer& container) {
  GANTRY_TRY(const oci::Json config, oci::Json::Parse(container.spec.json, "config.json"));
  GANTRY_TRY(const std::vector<Hook> hooks, ReadHooks(config));
  const std::string state = StateOf(container, config);
  const Deadline together = std::chrono::steady_clock::now() + kTogether;
  for (const Hook& hook : hooks) {
    GANTRY_CHECK_OK(Run(hook, container, state, together));
  }
  return {};
}

}  // namespace gantry::vmm::guest

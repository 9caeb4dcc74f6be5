// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/reexec.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/keeper/note.h"
#include "core/link/run_dir.h"
#include "core/os/process.h"
#include "core/os/spawn.h"

namespace gantry::keeper {
namespace {

using namespace std::chrono_literals;

constexpr auto kCheckTimeout = 10s;
constexpr auto kIdleTimeout = 5s;
constexpr auto kBetweenLooks = 1ms;
/// What the check leaves in place of the state.
constexpr std::string_view kUnderstood = "gantry-keeper understands\n";
/// Or this, and why.
constexpr std::string_view kRefused = "gantry-keeper refuses: ";
/// The check's own number for the state.
constexpr int kCheckFd = 3;
constexpr size_t kMaxAnswer = 4096;

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

/// The descriptor of a script would be closed when its interpreter wants to read it.
Status CheckElf(int fd, const std::string& program) {
  std::array<char, SELFMAG> magic{};
  if (pread(fd, magic.data(), magic.size(), 0) != SELFMAG ||
      std::memcmp(magic.data(), ELFMAG, SELFMAG) != 0) {
    return Fail(Code::kInvalidArgument, "execute '{}': it is no ELF program", program);
  }
  return {};
}

void SetCloseOnExec(int fd, bool close_on_exec) {
  fcntl(fd, F_SETFD, close_on_exec ? FD_CLOEXEC : 0);
}

}  // namespace

Reexec::~Reexec() {
  if (change_) {
    loop_.Cancel(change_->timer);
  }
}

void Reexec::Begin(const std::string& program, uint64_t asker, Failed failed) {
  if (change_) {
    failed(
        Error{Code::kFailedPrecondition, 0, "upgrade the keeper: another upgrade is going on", {}});
    return;
  }
  change_ = std::make_unique<Change>();
  change_->program = program;
  change_->asker = asker;
  change_->failed = std::move(failed);
  if (const Status begun = StartCheck(); !begun) {
    Fail(begun.error().message);
  }
}

Status Reexec::StartCheck() {
  GANTRY_TRY(change_->opened, link::OpenProgram(change_->program));
  GANTRY_CHECK_OK(CheckElf(change_->opened.get(), change_->program));
  GANTRY_TRY(change_->check_state, state::Write(events_.save(change_->asker)));
  os::SpawnRequest request;
  request.program_fd = change_->opened.get();
  request.argv = {change_->program, "--check-state-fd=" + std::to_string(kCheckFd)};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    request.env.emplace_back(*entry);
  }
  request.cwd = "/";
  request.descriptors = {{STDOUT_FILENO, STDOUT_FILENO},
                         {STDERR_FILENO, STDERR_FILENO},
                         {change_->check_state.get(), kCheckFd}};
  GANTRY_TRY(os::SpawnResult child, os::SpawnProcess(request));
  change_->check = child.process;
  change_->check_pidfd = std::move(child.pidfd);
  change_->timer = loop_.After(kCheckTimeout, [this] {
    change_->timer = {};
    IgnoreError(SendSignal(change_->check_pidfd.get(), SIGKILL), "it has ended just now");
  });
  return {};
}

void Reexec::OnExit(const link::Exit& exit) {
  if (!change_ || !change_->check_state || exit.pid != change_->check.pid ||
      exit.start_time != change_->check.start_time) {
    return;
  }
  loop_.Cancel(std::exchange(change_->timer, {}));
  const UniqueFd answered = std::exchange(change_->check_state, {});
  const auto size = FileSize(answered.get());
  const std::string answer =
      size && *size <= kMaxAnswer ? ReadAt(answered.get(), 0, *size).value_or("") : "";
  if (answer == kUnderstood) {
    change_->until = loop_.Now() + kIdleTimeout;
    // Not now: there may be more children to collect.
    change_->timer = loop_.After(0ms, [this] { AwaitIdle(); });
    return;
  }
  Fail(answer.starts_with(kRefused)
           ? Format("'{}' refuses: {}", change_->program, answer.substr(kRefused.size()))
           : Format("'{}' did not say that it understands the state (wait status {:#x}); "
                    "is it a gantry-keeper?",
                    change_->program, exit.wait_status));
}

void Reexec::AwaitIdle() {
  change_->timer = {};
  if (events_.idle()) {
    Fail(Execute().error().message);
    return;
  }
  if (loop_.Now() >= change_->until) {
    Fail("the keeper was never between two messages; try again when less is going on");
    return;
  }
  change_->timer = loop_.After(kBetweenLooks, [this] { AwaitIdle(); });
}

void Reexec::Fail(std::string why) {
  const auto change = std::move(change_);
  loop_.Cancel(change->timer);
  Note("upgrade of the keeper: {}", why);
  change->failed(Error{Code::kFailedPrecondition, 0, "upgrade the keeper: " + why, {}});
}

Status Reexec::Execute() {
  const state::Keeper keeper = events_.save(change_->asker);
  GANTRY_TRY(const UniqueFd memfd, state::Write(keeper));
  const UniqueFd previous(open("/proc/self/exe", O_PATH | O_CLOEXEC));
  if (!previous) {
    return FailErrno(errno, "open the program that runs");
  }
  std::vector<std::string> words = {change_->program, "--run-dir=" + keeper.run_dir,
                                    "--state-fd=" + std::to_string(memfd.get()),
                                    "--previous-fd=" + std::to_string(previous.get())};
  KeepForChildren(keeper, true);
  SetCloseOnExec(memfd.get(), false);
  SetCloseOnExec(previous.get(), false);
  execveat(change_->opened.get(), "", Pointers(words).data(), environ, AT_EMPTY_PATH);
  const int error = errno;
  KeepForChildren(keeper, false);
  return FailErrno(error, "execute '{}'", change_->program);
}

Status CheckState(int memfd) {
  const auto read = state::Read(memfd);
  GANTRY_CHECK_OK(Truncate(memfd, 0));
  GANTRY_CHECK_OK(WriteAt(
      memfd, 0, read ? std::string(kUnderstood) : Format("{}{}", kRefused, read.error().message)));
  return read ? Status() : std::unexpected(read.error());
}

void KeepForChildren(const state::Keeper& keeper, bool keep) {
  for (const int fd : state::DescriptorsOf(keeper)) {
    SetCloseOnExec(fd, !keep);
  }
}

Status ExecutePrevious(int state_fd, int previous_fd) {
  std::vector<std::string> words = {"gantry-keeper", "--state-fd=" + std::to_string(state_fd)};
  SetCloseOnExec(previous_fd, true);
  execveat(previous_fd, "", Pointers(words).data(), environ, AT_EMPTY_PATH);
  return FailErrno(errno, "execute the previous keeper again");
}

}  // namespace gantry::keeper

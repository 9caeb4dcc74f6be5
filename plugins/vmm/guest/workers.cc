// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/workers.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>
#include <vector>

#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/proto/proto_message.h>

#include "plugins/vmm/protocol/envelope.h"

namespace gantry::vmm::guest {
namespace {

void Say(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return;  // Nobody hears it any more.
    }
    text.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
  }
}

[[noreturn]] void BeChild(int fd, const Workers::Work& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  CloseAllExcept({fd});
  ::fcntl(fd, F_SETFL, 0);
  protocol::Envelope answer;
  if (Result<std::string> done = work(); done) {
    answer.body = std::move(*done);
  } else {
    answer.failure = protocol::ToFailure(done.error());
  }
  // So that what has ended without a word is told from an empty answer.
  answer.kind = 1;
  Say(fd, EncodeProto(answer));
  ::_exit(0);
}

Result<std::string> AnswerIn(const std::string& said) {
  GANTRY_TRY(protocol::Envelope answer, DecodeProto<protocol::Envelope>(said));
  if (answer.kind != 1) {
    return Fail(Code::kInternal, "the agent's child that did it has ended without a word");
  }
  if (answer.failure) {
    return std::unexpected(protocol::ToError(*answer.failure));
  }
  return std::move(answer.body);
}

}  // namespace

void CloseAllExcept(std::initializer_list<int> kept) {
  std::vector<int> sorted(kept);
  std::ranges::sort(sorted);
  unsigned first = STDERR_FILENO + 1;
  for (const int fd : sorted) {
    if (fd >= static_cast<int>(first)) {
      if (fd > static_cast<int>(first)) {
        ::syscall(SYS_close_range, first, static_cast<unsigned>(fd - 1), 0);
      }
      first = static_cast<unsigned>(fd) + 1;
    }
  }
  ::syscall(SYS_close_range, first, ~0U, 0);
}

void Workers::Run(Work work, Done done) {
  if (running_.size() >= kMost) {
    waiting_.emplace_back(std::move(work), std::move(done));
    return;
  }
  Begin(work, std::move(done));
}

void Workers::Begin(const Work& work, Done done) {
  auto pipe = MakePipe();
  if (!pipe) {
    done(std::unexpected(std::move(pipe).error()));
    return;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    BeChild(pipe->second.get(), work);
  }
  if (child < 0) {
    done(FailErrno(errno, "make a child for it"));
    return;
  }
  const uint64_t number = ++last_;
  Running& one = running_[number];
  one.socket = std::move(pipe->first);
  one.done = std::move(done);
  one.watch = loop_.On(one.socket.get(), EPOLLIN, [this, number](uint32_t) { Hear(number); });
}

void Workers::Hear(uint64_t number) {
  const auto found = running_.find(number);
  Running& one = found->second;
  std::array<char, 4096> part{};
  const ssize_t got = ::read(one.socket.get(), part.data(), part.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (got > 0 && one.said.size() < kMaxAnswer) {
    one.said.append(part.data(), static_cast<size_t>(got));
    return;
  }
  const std::string said = std::move(one.said);
  const Done done = std::move(one.done);
  running_.erase(found);
  done(AnswerIn(said));
  if (!waiting_.empty() && running_.size() < kMost) {
    auto next = std::move(waiting_.front());
    waiting_.pop_front();
    Begin(next.first, std::move(next.second));
  }
}

}  // namespace gantry::vmm::guest

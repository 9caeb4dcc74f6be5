// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/agent.h"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/proto/proto_message.h>

namespace gantry::vmm::guest {
namespace {

using protocol::Kind;

constexpr std::chrono::hours kLong{1};
/// For the answer to Shutdown, and what processes have said last, to leave the machine; then it is
/// off all the same: four seconds.
constexpr std::chrono::milliseconds kLastWord{20};
constexpr int kLastWordTurns = 200;

/// The kernel chooses its boot id when it is first read. Of guests that are restored from one
/// template that has to be after `SetUp`, which brings each the entropy of its own.
protocol::Hello Greeting(bool has_entropy) {
  protocol::Hello hello{.first_version = protocol::kFirstVersion,
                        .last_version = protocol::kLastVersion,
                        .agent = "gantry-agent " GANTRY_VERSION,
                        .kernel = {},
                        .boot_id = {},
                        .session = {},
                        .realtime_ns = 0,
                        .since_boot_ns = 0};
  utsname name{};
  if (::uname(&name) == 0) {
    hello.kernel = name.release;
  }
  const auto boot = has_entropy ? ReadFile("/proc/sys/kernel/random/boot_id", 64)
                                : Result<std::string>(std::string());
  if (boot) {
    hello.boot_id = boot->substr(0, boot->find('\n'));
  }
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  hello.realtime_ns = now.tv_sec * 1'000'000'000LL + now.tv_nsec;
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  hello.since_boot_ns = static_cast<uint64_t>(now.tv_sec * 1'000'000'000LL + now.tv_nsec);
  return hello;
}

/// Calls `then` with the message in `body`, or answers that it is none.
template <class Request, class Then>
bool With(const std::string& body, const Control::Answer& answer, const Then& then) {
  auto request = DecodeProto<Request>(body);
  if (!request) {
    answer(std::unexpected(std::move(request).error()));
    return true;
  }
  then(std::move(*request));
  return true;
}

/// A result as an answer.
Result<std::string> Bytes(const Status& status) {
  return status ? Result<std::string>(std::string())
                : Result<std::string>(std::unexpected(status.error()));
}

template <class T>
Result<std::string> Bytes(const Result<T>& result) {
  return result ? Result<std::string>(EncodeProto(*result))
                : Result<std::string>(std::unexpected(result.error()));
}

}  // namespace

Agent::Agent(std::unique_ptr<Loop> loop, Platform& platform, cgroup::CgroupHierarchy hierarchy,
             const Setting& setting)
    : loop_(std::move(loop)),
      platform_(platform),
      workers_(*loop_),
      control_(std::make_unique<Control>(
          *loop_, platform, [this] { return Greeting(is_set_up_); },
          [this](Kind kind, const std::string& body, const Control::Answer& answer) {
            OnCall(kind, body, answer);
          })),
      containers_(
          *loop_, workers_, platform, std::move(hierarchy), setting.folder,
          {.exited =
               [this](const auto& event) { control_->Tell(Kind::kExited, EncodeProto(event)); },
           .out_of_memory =
               [this](const auto& event) {
                 control_->Tell(Kind::kOutOfMemory, EncodeProto(event));
               },
           .log = [this](const std::string& line) { Log(line); }}),
      forwards_(*loop_, platform) {}

Result<std::unique_ptr<Agent>> Agent::Make(Platform& platform, const Setting& setting) {
  ::signal(SIGPIPE, SIG_IGN);  // NOLINT(concurrency-mt-unsafe): one thread.
  GANTRY_TRY(auto loop, Loop::Make());
  GANTRY_TRY(auto hierarchy, cgroup::CgroupHierarchy::OfNode());
  std::unique_ptr<Agent> agent(new Agent(std::move(loop), platform, std::move(hierarchy), setting));
  GANTRY_CHECK_OK(agent->WatchChildren());
  agent->control_->Dial();
  return agent;
}

Status Agent::WatchChildren() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  if (::sigprocmask(SIG_BLOCK, &child, nullptr) != 0) {  // NOLINT(concurrency-mt-unsafe)
    return FailErrno(errno, "block SIGCHLD");
  }
  children_.reset(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!children_) {
    return FailErrno(errno, "make a descriptor for SIGCHLD");
  }
  on_children_ = loop_->On(children_.get(), EPOLLIN, [this](uint32_t) {
    std::array<signalfd_siginfo, 8> told{};
    while (::read(children_.get(), told.data(), sizeof(told)) > 0) {
    }
    containers_.Collect();
  });
  return {};
}

// What nobody hears is counted.
void Agent::Log(const std::string& line) {
  if (!control_->welcome()) {
    ++lost_lines_;
    return;
  }
  control_->Tell(Kind::kLog, EncodeProto(protocol::LogLine{.text = line,
                                                           .lost = std::exchange(lost_lines_, 0)}));
}

Status Agent::Run() {
  for (;;) {
    GANTRY_CHECK_OK(loop_->Turn(kLong));
  }
}

void Agent::OnCall(Kind kind, const std::string& body, const Control::Answer& answer) {
  if (OnContainerCall(kind, body, answer) || OnReportCall(kind, body, answer) ||
      OnMachineCall(kind, body, answer)) {
    return;
  }
  answer(Fail(Code::kUnimplemented, "this agent, of protocol version {}, does not know {}",
              protocol::kLastVersion, protocol::NameOf(kind)));
}

bool Agent::OnContainerCall(Kind kind, const std::string& body, const Control::Answer& answer) {
  switch (kind) {
    case Kind::kCreateContainer:
      return With<protocol::CreateContainer>(
          body, answer, [&](const auto& request) { containers_.Create(request, answer); });
    case Kind::kCreateExec:
      return With<protocol::CreateExec>(
          body, answer, [&](const auto& request) { containers_.Create(request, answer); });
    case Kind::kStart:
      return With<protocol::Start>(
          body, answer, [&](const auto& request) { containers_.Start(request, answer); });
    case Kind::kDelete:
      return With<protocol::Delete>(
          body, answer, [&](const auto& request) { containers_.Delete(request, answer); });
    case Kind::kPause:
      return With<protocol::Pause>(body, answer, [&](const auto& request) {
        containers_.Freeze(request.container, true, answer);
      });
    case Kind::kResume:
      return With<protocol::Resume>(body, answer, [&](const auto& request) {
        containers_.Freeze(request.container, false, answer);
      });
    case Kind::kUpdate:
      return With<protocol::Update>(
          body, answer, [&](const auto& request) { containers_.Update(request, answer); });
    default:
      return false;
  }
}

bool Agent::OnReportCall(Kind kind, const std::string& body, const Control::Answer& answer) {
  switch (kind) {
    case Kind::kSignal:
      return With<protocol::Signal>(
          body, answer, [&](const auto& request) { answer(Bytes(containers_.Signal(request))); });
    case Kind::kResize:
      return With<protocol::Resize>(
          body, answer, [&](const auto& request) { answer(Bytes(containers_.Resize(request))); });
    case Kind::kStats:
      return With<protocol::Stats>(
          body, answer, [&](const auto& request) { answer(Bytes(containers_.Stats(request))); });
    case Kind::kPids:
      return With<protocol::Pids>(
          body, answer, [&](const auto& request) { answer(Bytes(containers_.Pids(request))); });
    case Kind::kForward:
      return With<protocol::Forward>(
          body, answer, [&](const auto& request) { answer(Bytes(forwards_.Begin(request))); });
    case Kind::kList:
      answer(EncodeProto(containers_.List()));
      return true;
    default:
      return false;
  }
}

bool Agent::OnMachineCall(Kind kind, const std::string& body, const Control::Answer& answer) {
  switch (kind) {
    case Kind::kSetUp:
      return With<protocol::SetUp>(body, answer, [&](const auto& request) {
        workers_.Run([this, request] { return Bytes(platform_.SetUp(request)); },
                     [this, answer](Result<std::string> done) {
                       is_set_up_ = is_set_up_ || done.has_value();
                       answer(std::move(done));
                     });
      });
    case Kind::kAttach:
      return With<protocol::Attach>(body, answer, [&](const auto& request) {
        workers_.Run([this, request] { return Bytes(platform_.Attach(request)); }, answer);
      });
    case Kind::kDetach:
      return With<protocol::Detach>(body, answer, [&](const auto& request) {
        workers_.Run([this, request] { return Bytes(platform_.Detach(request)); }, answer);
      });
    case Kind::kOnline:
      return With<protocol::Online>(body, answer, [&](const auto& request) {
        workers_.Run([this, request] { return Bytes(platform_.Online(request)); }, answer);
      });
    case Kind::kShutdown:
      Shutdown(answer);
      return true;
    default:
      return false;
  }
}

// Again: the answer of the first is the end of the machine.
void Agent::Shutdown(const Control::Answer& answer) {
  containers_.KillAll();
  workers_.Run(
      [this]() -> Result<std::string> {
        platform_.Sync();
        return std::string();
      },
      [this, answer](Result<std::string> done) {
        answer(std::move(done));
        if (!std::exchange(shutting_down_, true)) {
          PowerOffWhenSaid();
        }
      });
}

void Agent::PowerOffWhenSaid() {
  const bool has_unread = containers_.HasUnread();
  ++waited_turns_;
  if ((waited_turns_ > 1 && control_->flushed() && !has_unread) || waited_turns_ > kLastWordTurns) {
    platform_.PowerOff();
    return;
  }
  if (waited_turns_ == 2 && has_unread) {
    Log("it would be off, but for what its processes have said and the host has not read");
  }
  loop_->After(&waited_turns_, kLastWord, [this] { PowerOffWhenSaid(); });
}

}  // namespace gantry::vmm::guest

// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/maker.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <span>
#include <utility>

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/cgroup/devices.h>
#include <gantry/toolkit/container/join.h>
#include <gantry/toolkit/container/make.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/oci/exec.h>
#include <gantry/toolkit/oci/resources.h>
#include <gantry/toolkit/oci/spec.h>
#include <gantry/toolkit/proto/proto_message.h>

#include "plugins/vmm/guest/disk_devices.h"
#include "plugins/vmm/guest/start_hooks.h"
#include "plugins/vmm/guest/workers.h"
#include "plugins/vmm/protocol/frames.h"

namespace gantry::vmm::guest {
namespace {

constexpr size_t kMaxWord = size_t{16} << 10;
constexpr size_t kMaxWarnings = 16;
constexpr size_t kMaxWarning = 256;

Status Say(int socket, const MakerWord& word, std::span<const int> fds = {}) {
  const std::string text = EncodeProto(word);
  GANTRY_TRY(const Transfer sent, SendWithFds(socket, text, fds));
  return sent.bytes == text.size() ? Status() : Fail(Code::kUnavailable, "the agent is gone");
}

Status EnterCgroup(const MakeOrder& order, oci::Spec& spec) {
  GANTRY_TRY(const auto hierarchy, cgroup::CgroupHierarchy::OfNode());
  GANTRY_TRY(const auto cgroup, cgroup::Cgroup::Create(hierarchy, CgroupPathOf(order.container)));
  const std::string text = spec.resources_json.empty() ? "{}" : spec.resources_json;
  GANTRY_TRY(const auto limits, oci::ParseResources(text, "linux.resources"));
  GANTRY_CHECK_OK(cgroup.Update(limits));
  GANTRY_TRY(const auto object, oci::Json::Parse(text, "linux.resources"));
  GANTRY_TRY(auto rules, oci::ReadDeviceRules(object));
  GANTRY_TRY(const auto disks, NumberDisks(spec));
  rules.insert(rules.end(), disks.begin(), disks.end());
  GANTRY_CHECK_OK(cgroup::LimitDevices(cgroup, rules));
  return cgroup.AddProcess(0);  // The writing process.
}

Status KeepSpec(const MakeOrder& order) {
  if (::mkdir(order.folder.c_str(), 0700) != 0) {
    return FailErrno(errno, "make '{}'", order.folder);
  }
  return WriteFile(order.folder + "/config.json", order.spec_json, 0600);
}

/// The limits of the container are not the maker's once it has made it: a container that is frozen,
/// killed or out of memory at its gate must not take it along.
Status LeaveCgroup(const cgroup::Cgroup& home) { return home.AddProcess(0); }

Result<container::MadeProcess> MakeContainer(const MakeOrder& order, oci::Spec& spec) {
  GANTRY_CHECK_OK(KeepSpec(order));
  container::MakeRequest request;
  GANTRY_TRY(request.spec, oci::ParseSpec(order.spec_json, "config.json"));
  if (request.spec.process.terminal != order.terminal) {
    return Fail(Code::kInvalidArgument,
                "make container '{}': process.terminal of its config.json is {}, and it has {} "
                "stream of a terminal",
                order.container, request.spec.process.terminal, order.terminal ? "a" : "no");
  }
  GANTRY_TRY(const auto hierarchy, cgroup::CgroupHierarchy::OfNode());
  GANTRY_TRY(const auto home,
             cgroup::Cgroup::OfProcess(hierarchy, {.pid = ::getpid(), .start_time = 0}));
  GANTRY_CHECK_OK(EnterCgroup(order, request.spec));
  if (HasStartHooks(order.spec_json)) {
    spec = request.spec;
  }
  request.bundle = order.bundle;
  request.id = order.container;
  request.streams = order.streams;
  request.sibling = true;
  auto made = container::Make(request);
  GANTRY_CHECK_OK(LeaveCgroup(home));
  return made;
}

Result<container::MadeProcess> MakeExec(const MakeOrder& order) {
  container::JoinRequest request;
  GANTRY_TRY(std::string text, ReadFile(order.folder + "/config.json", protocol::kMaxFromHost));
  GANTRY_TRY(request.spec, oci::ParseSpec(std::move(text), "config.json"));
  GANTRY_TRY(request.process, oci::ParseExec(order.process_json, request.spec));
  if (request.process.terminal != order.terminal) {
    return Fail(Code::kInvalidArgument, "make an exec in '{}': 'terminal' of its process is {}",
                order.container, request.process.terminal);
  }
  request.bundle = order.bundle;
  request.id = order.container;
  request.init = order.init;
  request.streams = order.streams;
  request.sibling = true;
  return container::Join(request);
}

bool AwaitGate(int socket) {
  char byte = 0;
  ssize_t got = 0;
  while ((got = ::recv(socket, &byte, 1, 0)) < 0 && errno == EINTR) {
  }
  return got == 1;
}

Status SayMade(int socket, container::MadeProcess& made) {
  MakerWord word{.word = static_cast<uint32_t>(MakerWord::Word::kMade),
                 .pid = made.pid(),
                 .warnings = made.warnings(),
                 .failure = {}};
  word.warnings.resize(std::min(word.warnings.size(), kMaxWarnings));
  for (std::string& warning : word.warnings) {
    warning.resize(std::min(warning.size(), kMaxWarning));
  }
  const UniqueFd console = made.TakeConsole();
  std::vector<int> fds = {made.pidfd().get()};
  if (console) {
    fds.push_back(console.get());
  }
  return Say(socket, word, fds);
}

Status MakeAndStart(const MakeOrder& order, int socket) {
  oci::Spec spec;
  GANTRY_TRY(auto made, order.init >= 0 ? MakeExec(order) : MakeContainer(order, spec));
  GANTRY_CHECK_OK(SayMade(socket, made));
  if (!AwaitGate(socket)) {
    return Fail(Code::kCanceled, "wait at the gate: it was closed");
  }
  if (order.init < 0 && HasStartHooks(order.spec_json)) {
    GANTRY_CHECK_OK(RunStartHooks(
        {.id = order.container, .bundle = order.bundle, .spec = spec, .init = made.pidfd().get()}));
  }
  return made.Start();
}

[[noreturn]] void BeMaker(const MakeOrder& order, int socket) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto& streams = order.streams;
  CloseAllExcept({socket, order.init, streams[0], streams[1], streams[2]});
  const Status done = MakeAndStart(order, socket);
  MakerWord word{.word = static_cast<uint32_t>(MakerWord::Word::kStarted),
                 .pid = 0,
                 .warnings = {},
                 .failure = {}};
  if (!done) {
    word.word = static_cast<uint32_t>(MakerWord::Word::kFailed);
    word.failure = protocol::ToFailure(done.error());
  }
  IgnoreError(Say(socket, word), "an agent that is gone needs no answer");
  ::_exit(0);
}

}  // namespace

std::string CgroupPathOf(const std::string& container) { return "/containers/" + container; }

Result<Maker> Maker::Begin(const MakeOrder& order) {
  GANTRY_TRY(auto ends, BlockingSocketPair(SOCK_SEQPACKET));
  const pid_t child = ::fork();
  if (child == 0) {
    BeMaker(order, ends.second.get());
  }
  if (child < 0) {
    return FailErrno(errno, "make a child to make '{}'", order.container);
  }
  GANTRY_CHECK_OK(SetNonblocking(ends.first.get(), true));
  return Maker(std::move(ends.first));
}

Result<std::optional<HeardWord>> Maker::Hear() {
  std::string buffer(kMaxWord, '\0');
  std::vector<UniqueFd> fds;
  GANTRY_TRY(const Transfer got, RecvWithFds(socket_.get(), buffer, fds));
  if (got.would_block) {
    return std::optional<HeardWord>();
  }
  if (got.end || got.bytes == 0) {
    return Fail(Code::kUnavailable, "its maker has ended without a word");
  }
  buffer.resize(got.bytes);
  HeardWord heard;
  GANTRY_TRY(heard.word, DecodeProto<MakerWord>(buffer));
  if (!fds.empty()) {
    heard.pidfd = std::move(fds[0]);
  }
  if (fds.size() > 1) {
    heard.console = std::move(fds[1]);
  }
  return std::optional(std::move(heard));
}

Status Maker::Open() {
  const char byte = 'x';
  if (::send(socket_.get(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) {
    return FailErrno(errno, "open the gate");
  }
  return {};
}

}  // namespace gantry::vmm::guest

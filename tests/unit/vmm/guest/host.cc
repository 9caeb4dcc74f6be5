// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/vmm/guest/host.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/guest/agent.h"
#include "plugins/vmm/guest/maker.h"

namespace gantry::vmm {
namespace {

/// A machine that nothing is done to.
class NoMachine : public guest::Platform {
 public:
  explicit NoMachine(std::string folder) : folder_(std::move(folder)) {}

  Result<UniqueFd> Dial(uint32_t port) override {
    return ConnectUnix(Format("{}/v_{}", folder_, port));
  }

  Status SetUp(const protocol::SetUp& request) override {
    return request.hostname == "bad" ? Fail(Code::kInvalidArgument, "no such name")
                                     : Note("set up " + request.hostname);
  }

  Status Attach(const protocol::Attach& request) override {
    // One that never comes: nobody else is to wait for it.
    if (request.wait_ms == UINT32_MAX) {
      ::pause();
    }
    return Note(Format("attach {}", request.mounts.size()));
  }

  Status Detach(const protocol::Detach& request) override {
    return Note(Format("detach {}", request.targets.size()));
  }

  Result<protocol::OnlineAnswer> Online(const protocol::Online& request) override {
    GANTRY_CHECK_OK(Note(Format("online {}", request.cpus)));
    return protocol::OnlineAnswer{.cpus = request.cpus, .memory_bytes = 1};
  }

  void Sync() override { IgnoreError(Note("sync"), "the test would not find it"); }

  void PowerOff() override { ::_exit(42); }

 private:
  Status Note(const std::string& line) {
    const std::string path = folder_ + "/machine";
    std::string text;
    if (auto before = ReadFile(path, size_t{1} << 20)) {
      text = std::move(*before);
    }
    return WriteFile(path, text + line + "\n", 0600);
  }

  const std::string folder_;
};

[[noreturn]] void BeAgent(const std::string& folder) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  NoMachine machine(folder);
  const auto agent = guest::Agent::Make(machine, {.folder = folder + "/containers"});
  if (agent) {
    IgnoreError((*agent)->Run(), "it is killed");
  }
  ::_exit(1);
}

}  // namespace

Host::Host() {
  char name[] = "/tmp/gantry-guest-XXXXXX";
  folder_ = ::mkdtemp(name);
  EXPECT_EQ(::mkdir((folder_ + "/containers").c_str(), 0700), 0);
  control_ = std::move(*ListenUnix(Format("{}/v_{}", folder_, protocol::kControlPort)));
  UniqueFd streams = std::move(*ListenUnix(Format("{}/v_{}", folder_, protocol::kStreamPort)));
  agent_ = ::fork();
  if (agent_ == 0) {
    BeAgent(folder_);
  }
  stop_.reset(::eventfd(0, EFD_CLOEXEC));
  streams_ = std::move(*StreamListener::On(std::move(streams)));
  stream_reader_ = std::thread([this] {
    Watch(streams_->fd(), [this] {
      streams_->OnReadable();
      return true;
    });
  });
}

Host::~Host() {
  for (const std::string& id : ids_) {
    if (client_) {
      IgnoreError(client_->Call(protocol::Delete{.container = id, .exec = ""}, Soon()),
                  "one that is not there");
    }
  }
  const uint64_t one = 1;
  EXPECT_EQ(::write(stop_.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  stream_reader_.join();
  Disconnect();
  ::kill(agent_, SIGKILL);
  ::waitpid(agent_, nullptr, 0);
  if (const auto hierarchy = cgroup::CgroupHierarchy::OfNode()) {
    for (const std::string& id : ids_) {
      const auto left = cgroup::Cgroup::Named(*hierarchy, guest::CgroupPathOf(id));
      EXPECT_TRUE(!left || !left->Exists()) << "the cgroup of " << id << " is left";
    }
    if (const auto above = cgroup::Cgroup::Named(*hierarchy, "/containers")) {
      IgnoreError(above->RemoveIfEmpty(), "another test may use it");
    }
  }
  IgnoreError(RemoveTree(folder_), "the next one has another name");
}

void Host::Watch(int fd, std::function<bool()> ready) {
  for (;;) {
    std::array<pollfd, 2> two = {{{.fd = fd, .events = POLLIN, .revents = 0},
                                  {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
    ::poll(two.data(), two.size(), -1);
    if (two[1].revents != 0 || (two[0].revents != 0 && !ready())) {
      return;
    }
  }
}

Status Host::Connect() {
  GANTRY_TRY(Greeted greeted, GreetAgent(control_, session_, Soon()));
  session_ = greeted.session;
  AgentEvents events;
  events.exited = [this](const AgentExit& exit) {
    const std::lock_guard lock(mutex_);
    exits_.push_back(exit);
    changed_.notify_all();
    if (listener_.exited) {
      listener_.exited(exit);
    }
  };
  events.out_of_memory = [this](const std::string& container, uint64_t kills) {
    const std::lock_guard lock(mutex_);
    if (listener_.out_of_memory) {
      listener_.out_of_memory(container, kills);
    }
  };
  events.log = [this](const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (listener_.log) {
      listener_.log(line);
    }
  };
  client_ = std::make_unique<AgentClient>("test", std::move(greeted), std::move(events));
  client_reader_ =
      std::thread([this] { Watch(client_->fd(), [this] { return client_->OnReadable(); }); });
  return {};
}

void Host::Hear(AgentEvents listener) {
  const std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
}

void Host::Disconnect() {
  if (client_) {
    client_->Close();
    client_reader_.join();
    client_.reset();
  }
}

std::string Host::NewId() {
  static int count = 0;
  return ids_.emplace_back(Format("t{}-{}", ::getpid(), ++count));
}

bool Host::HasExited(const std::string& container, const std::string& exec) {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(exits_, [&](const AgentExit& exit) {
    return exit.container == container && exit.exec == exec;
  });
}

uint32_t Host::WaitForExit(const std::string& container, const std::string& exec) {
  std::unique_lock lock(mutex_);
  const auto same = [&](const AgentExit& exit) {
    return exit.container == container && exit.exec == exec;
  };
  if (!changed_.wait_until(lock, Soon(), [&] { return std::ranges::any_of(exits_, same); })) {
    ADD_FAILURE() << container << "/" << exec << " has not ended";
    return 999;
  }
  return std::ranges::find_if(exits_, same)->exit.status;
}

UniqueFd Host::Stream(const std::string& token) {
  auto stream = streams_->Take(token, Soon());
  if (!stream) {
    ADD_FAILURE() << stream.error().message;
    return {};
  }
  return std::move(*stream);
}

std::string Host::Machine() const {
  return ReadFile(folder_ + "/machine", size_t{1} << 20).value_or("");
}

void GuestTest::SetUp() {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "makes containers, which needs root";
  }
  host_ = std::make_unique<Host>();
  const Status connected = host_->Connect();
  ASSERT_TRUE(connected) << connected.error().message;
}

GuestTest::Made GuestTest::Create(container::Config config, bool with_input) {
  Made made;
  made.id = host_->NewId();
  protocol::Streams streams;
  streams.output = host_->Token();
  if (with_input) {
    streams.input = host_->Token();
  }
  const auto created =
      host_->client().Call(protocol::CreateContainer{.container = made.id,
                                                     .bundle = bundle_.path(),
                                                     .spec_json = container::Bundle::TextOf(config),
                                                     .streams = streams},
                           Soon());
  if (!created) {
    ADD_FAILURE() << created.error().message;
    return made;
  }
  made.out = host_->Stream(streams.output);
  if (with_input) {
    made.in = host_->Stream(streams.input);
  }
  return made;
}

GuestTest::Made GuestTest::Run(container::Config config, bool with_input) {
  Made made = Create(std::move(config), with_input);
  const auto started =
      host_->client().Call(protocol::Start{.container = made.id, .exec = ""}, Soon());
  EXPECT_TRUE(started) << started.error().message;
  return made;
}

}  // namespace gantry::vmm

// SPDX-License-Identifier: Apache-2.0
//
// A keeper in the test's own process and on the test's own loop, with real sockets and
// real child processes; the test plays engine, shim and containerd.
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "core/keeper/keeper.h"
#include "core/os/fs.h"
#include "tests/unit/async/simulated_loop.h"

namespace gantry::keeper {

using namespace std::chrono_literals;

/// The test's end of the link of one engine process.
struct FakeEngine {
  UniqueFd life;
  std::unique_ptr<link::Channel> channel;
  std::vector<link::Message> got;

  /// Ends the process as a crash would.
  void Crash() {
    channel.reset();
    life.reset();
  }

  template <class T>
  std::vector<T> All() const {
    std::vector<T> all;
    for (const link::Message& message : got) {
      if (message.type == T::kType) {
        all.push_back(*message.As<T>());
      }
    }
    return all;
  }

  template <class T>
  size_t Count() const {
    return All<T>().size();
  }
};

/// containerd's end of a connection.
class Client {
 public:
  Client(async::Loop& loop, const std::string& address) : loop_(loop) {
    auto socket = ConnectUnix(address.substr(std::string("unix://").size()));
    EXPECT_TRUE(socket) << address;
    fd_ = std::move(*socket);
  }

  /// Sends what the socket takes, turning the loop in between.
  void SendBytes(std::string_view bytes) {
    const auto deadline = std::chrono::steady_clock::now() + 1min;
    while (!bytes.empty() && std::chrono::steady_clock::now() < deadline) {
      const ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      bytes.remove_prefix(sent > 0 ? static_cast<size_t>(sent) : 0);
      loop_.RunOnce(0ms);
    }
    EXPECT_TRUE(bytes.empty());
  }

  void Call(uint32_t stream, std::string_view payload, uint8_t flags = 0, uint8_t type = 1) {
    std::string frame = ResponseFrame(stream, payload);
    frame[8] = static_cast<char>(type);
    frame[9] = static_cast<char>(flags);
    SendBytes(frame);
  }

  /// Moves what has arrived into `answers`.
  void Poll() {
    char buffer[65536];
    ssize_t count = 0;
    while ((count = recv(fd_.get(), buffer, sizeof(buffer), MSG_DONTWAIT)) > 0) {
      in_.Feed({buffer, static_cast<size_t>(count)},
               [this](Frame frame) { answers.push_back(std::move(frame)); });
    }
    closed = closed || count == 0;
  }

  /// The code of the n-th answer; 0 for one without a status.
  int CodeOf(size_t index) const {
    ProtoReader in(answers.at(index).payload);
    if (!in.Next() || in.field() != 1) {
      return 0;
    }
    ProtoReader status(in.bytes());
    return status.Next() ? static_cast<int>(status.number()) : -1;
  }

  std::vector<Frame> answers;
  bool closed = false;

 private:
  async::Loop& loop_;
  UniqueFd fd_;
  FrameSplitter in_;
};

class KeeperTest : public testing::Test {
 protected:
  KeeperTest() : dir_(*os::TempDir::Create()) {
    loop_.clock.Run();
    const std::string path = dir_.path() + "/engine";
    setenv("GANTRY_TEST_ENGINE_SOCKET", path.c_str(), 1);
    engine_door_ = *ListenUnix(path);
    loop_.Watch(engine_door_.get(), EPOLLIN, [this](uint32_t) { AcceptEngine(); });
  }

  ~KeeperTest() override {
    for (const auto& engine : engines) {
      engine->Crash();
    }
    keeper_.reset();
    // Children of this test must not become orphans of the next one.
    const auto children = ReadFile("/proc/thread-self/children", 65536);
    std::istringstream in(children ? *children : "");
    for (pid_t child = 0; in >> child;) {
      kill(child, SIGKILL);
    }
  }

  void StartKeeper() {
    KeeperOptions options = MakeOptions();
    options.control = *ListenUnix(options.run_dir + "/keeper.sock");
    keeper_ = std::make_unique<Keeper>(loop_, std::move(options));
    ASSERT_TRUE(keeper_->Start());
  }

  virtual KeeperOptions MakeOptions() {
    KeeperOptions options;
    options.run_dir = dir_.path();
    options.engine = GANTRY_FAKE_ENGINE;
    options.child_defaults.open_files = {1024, 1024};
    options.child_defaults.umask = 022;
    options.delete_timing.engine_answers = 10s;
    options.delete_timing.engine_starts = 10s;
    return options;
  }

  template <class Predicate>
  bool Until(Predicate done) {
    const auto deadline = std::chrono::steady_clock::now() + 1min;
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      loop_.RunOnce(10ms);
    }
    return done();
  }

  /// Turns the loop until nothing happens any more.
  void Settle() {
    while (loop_.RunOnce(20ms)) {
    }
  }

  /// One question on the control socket.
  template <class Answer, class Question>
  Result<Answer> Ask(const Question& question) {
    std::optional<link::Message> answer;
    link::Channel channel(
        loop_, *ConnectUnix(dir_.path() + "/keeper.sock"),
        [&](link::Message message) { answer = std::move(message); }, [](const Error&) {});
    EXPECT_TRUE(channel.Send(question));
    if (!Until([&] { return answer.has_value(); })) {
      return Fail(Code::kDeadlineExceeded, "no answer");
    }
    if (answer->type == link::Type::kFailed) {
      const auto failed = answer->As<link::Failed>();
      return Fail(static_cast<Code>(failed->code), "{}", failed->message);
    }
    return answer->As<Answer>();
  }

  std::string Announce(const std::string& id, const std::string& group = "",
                       const std::string& bundle = "") {
    link::Announce announce;
    announce.id = id;
    announce.ns = "default";
    announce.grpc_address = "/run/containerd.sock";
    announce.group = group;
    announce.bundle = bundle;
    const auto announced = Ask<link::Announced>(announce);
    EXPECT_TRUE(announced) << announced.error().message;
    return announced ? announced->address : "";
  }

  link::Delete DeleteOf(const std::string& id) {
    link::Delete request;
    request.id = id;
    request.ns = "default";
    request.grpc_address = "/run/containerd.sock";
    return request;
  }

  /// Waits for the n-th engine process.
  FakeEngine& Engine(size_t index = 0) {
    EXPECT_TRUE(Until([&] { return engines.size() > index; }));
    return *engines.at(index);
  }

  /// The same, after its Hello was answered with a whole snapshot.
  FakeEngine& ReadyEngine(size_t index = 0) {
    FakeEngine& engine = Engine(index);
    EXPECT_TRUE(engine.channel->Send(link::Hello{link::kProtocolVersion}));
    EXPECT_TRUE(Until([&] { return engine.Count<link::SnapshotEnd>() == 1; }));
    return engine;
  }

  /// Spawns `/bin/sh -c script` through an engine.
  link::Spawned Shell(FakeEngine& engine, const std::string& script, const std::string& name = "") {
    link::Spawn spawn;
    spawn.path = "/bin/sh";
    spawn.argv = {"sh", "-c", script};
    spawn.name = name;
    spawn.env = {"PATH=/usr/bin:/bin"};
    const size_t before = engine.Count<link::Spawned>();
    EXPECT_TRUE(engine.channel->Send(spawn));
    EXPECT_TRUE(Until([&] { return engine.Count<link::Spawned>() > before; }));
    return engine.All<link::Spawned>().back();
  }

  link::KeeperStatus Status() { return *Ask<link::KeeperStatus>(link::Query{}); }

  os::TempDir dir_;
  /// Its clock runs, since real processes come and go; a test of times stops and turns it.
  test::SimulatedLoop loop_;
  std::vector<std::unique_ptr<FakeEngine>> engines;
  std::unique_ptr<Keeper> keeper_;

 private:
  void AcceptEngine() {
    auto accepted = AcceptUnix(engine_door_.get());
    if (!accepted || !*accepted) {
      return;
    }
    auto engine = std::make_unique<FakeEngine>();
    engine->life = std::move(**accepted);
    char byte = 0;
    std::vector<UniqueFd> fds;
    EXPECT_TRUE(SetNonblocking(engine->life.get(), false));
    EXPECT_TRUE(RecvWithFds(engine->life.get(), {&byte, 1}, fds));
    FakeEngine* const raw = engine.get();
    if (fds.size() == 1) {
      engine->channel = std::make_unique<link::Channel>(
          loop_, std::move(fds.front()),
          [raw](link::Message message) { raw->got.push_back(std::move(message)); },
          [](const Error&) {});
    }
    engines.push_back(std::move(engine));
  }

  UniqueFd engine_door_;
};

}  // namespace gantry::keeper

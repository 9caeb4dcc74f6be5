// SPDX-License-Identifier: Apache-2.0
//
// A host for the agent, and the agent: in a child of the test's, which dials UNIX sockets in place
// of vsock and makes containers here. What it would do to its machine it does to none.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "plugins/vmm/agent/client.h"
#include "plugins/vmm/agent/streams.h"
#include "tests/unit/toolkit/container/bundle.h"
#include "tests/unit/vmm/guest/stream_io.h"

namespace gantry::vmm {

inline Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

class Host {
 public:
  Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host();

  AgentClient& client() { return *client_; }

  StreamListener& streams() { return *streams_; }

  /// Who else is to hear what the agent tells; when it returns nobody is called who was before.
  void Hear(AgentEvents listener);

  /// The engine is gone, and comes again: the agent has to dial anew.
  void Disconnect();
  Status Connect();

  /// An id of this test's own.
  std::string NewId();

  struct Ends {
    std::string container;
    std::string exec;
    uint32_t status = 0;
  };

  /// How it has ended, once that is told.
  uint32_t WaitForExit(const std::string& container, const std::string& exec = "");
  bool HasExited(const std::string& container, const std::string& exec = "");

  std::string Token() { return *streams_->Expect(); }

  UniqueFd Stream(const std::string& token);

  const std::string& folder() const { return folder_; }

  pid_t agent() const { return agent_; }

  /// What the agent's machine was asked, one a line.
  std::string Machine() const;

 private:
  void Watch(int fd, std::function<bool()> ready);

  std::string folder_;
  UniqueFd control_;
  UniqueFd stop_;
  pid_t agent_ = 0;
  std::string session_;
  std::vector<std::string> ids_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<AgentExit> exits_;
  /// Called with `mutex_` held.
  AgentEvents listener_;
  std::unique_ptr<AgentClient> client_;
  std::unique_ptr<StreamListener> streams_;
  std::thread client_reader_;
  std::thread stream_reader_;
};

/// Whoever makes containers needs root.
class GuestTest : public testing::Test {
 protected:
  void SetUp() override;

  /// Creates a container with busybox's shell as its init, its output on a stream.
  struct Made {
    std::string id;
    UniqueFd out;
    UniqueFd in;
  };

  Made Create(container::Config config, bool with_input = false);
  /// Creates and starts it.
  Made Run(container::Config config, bool with_input = false);

  container::Bundle bundle_;
  std::unique_ptr<Host> host_;
};

}  // namespace gantry::vmm

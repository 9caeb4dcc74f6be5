// SPDX-License-Identifier: Apache-2.0
//
// One container of one side, driven as containerd drives it but without
// containerd: exec of `start`, the task service over ttrpc, exec of `delete`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "core/rpc/blocking_client.h"
#include "tests/performance/bundle.h"
#include "tests/performance/command.h"
#include "tests/performance/lab.h"
#include "tests/performance/samples.h"

namespace gantry::bench {

inline constexpr std::string_view kTaskService = "containerd.task.v3.Task";

/// The destructor kills and removes what is left, as well as it can.
class Instance {
 public:
  /// Neither is kept beyond the lab.
  Instance(Lab& lab, const Side& side);
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance();

  /// Alters a config.json.
  using SpecChange = std::function<Result<std::string>(const std::string& spec)>;

  /// Bundle and fifos. Not part of what is timed. `change` may be none.
  Status Prepare(const std::vector<std::string>& argv, const SpecChange& change = {});

  /// In place of that: a bundle of the caller's whose rootfs is there, and no streams.
  void PrepareIn(const std::string& bundle) { bundle_path_ = bundle; }

  /// From now on its one output is a stream over its sandbox's socket, of that id, and no fifo.
  /// After StartShim.
  void StreamOutput(const std::string& stream_id) {
    out_uri_ = "ttrpc+unix://" + socket_ + "?streaming_id=" + stream_id;
  }

  /// Executes `start`; how long that took in ms.
  Result<double> StartShim();
  Status Connect();
  /// One more connection to a container that is another's, for calls alone.
  Status ConnectTo(const Instance& other);
  Status Create();
  Status Start();
  /// Its first half; Receive is the other one.
  Status SendStart();
  /// Ends when the process has; its status must be `expected`.
  Status Wait(uint32_t expected);
  Status Kill(uint32_t signal = 9);
  Status Delete();
  /// What containerd does after Delete: Shutdown and close.
  Status Shutdown();
  /// Executes `delete`; how long that took in ms.
  Result<double> DeleteShim();

  /// StartShim to Start, for rows that only want a running container.
  Status Run(const std::vector<std::string>& argv, const SpecChange& change = {});
  /// Kill to DeleteShim.
  Status End();

  /// Exec, Start, Wait, Delete of a process, each timed; `spec` is of ProcessSpec.
  Status Exec(const std::string& exec_id, const std::string& spec, const Stdio& stdio,
              Phases& phases);
  /// The same in two halves, for what is done while the process runs: Exec and Start;
  /// Wait and Delete. With a terminal `spec` must say so, too.
  Status BeginExec(const std::string& exec_id, const std::string& spec, const Stdio& stdio,
                   bool terminal, Phases& phases);
  Status FinishExec(const std::string& exec_id, Phases& phases);

  Result<std::string> Call(const std::string& method, std::string payload,
                           std::string_view service = kTaskService);
  /// The same in two steps; one call at a time.
  Status Send(const std::string& method, std::string payload,
              std::string_view service = kTaskService);
  Result<std::string> Receive();

  const std::string& id() const { return id_; }

  /// Where the shim's socket is.
  const std::string& socket() const { return socket_; }

  const Stdio& stdio() const { return stdio_; }

 private:
  Command ShimCommand(const std::vector<std::string>& action) const;
  std::string BootstrapParams() const;
  std::string RuntimeOptions() const;
  std::string CreateRequest() const;
  Status TimedCall(const std::string& method, std::string payload, Phases& phases);
  std::string ProcessRequest(const std::string& exec_id) const;

  Lab& lab_;
  Side side_;
  std::string id_;
  std::string socket_;
  Bundle bundle_;
  std::string bundle_path_;
  Stdio stdio_;
  /// Empty: fifos.
  std::string out_uri_;
  std::unique_ptr<rpc::BlockingClient> client_;
  std::string sent_;
  uint32_t stream_ = 0;
  bool started_ = false;
};

}  // namespace gantry::bench

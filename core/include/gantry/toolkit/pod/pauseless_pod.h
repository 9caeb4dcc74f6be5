// SPDX-License-Identifier: Apache-2.0
//
// A pod without a pause container, for backends whose containers are processes of the host: the
// process that holds its namespaces (holder.h) and the files that its containers share
// (pod_files.h). Containers join the namespaces by the paths in their specs, which CRI fills in.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/pod_config.h>
#include <gantry/sandbox.h>

namespace gantry {

/// What a backend's `Sandbox` of the kind kPauseless does by itself. It keeps its state with
/// `SandboxContext::Save`, which is its own alone. Thread: workers, as `Sandbox`.
/// Owner: the context is borrowed and outlives it.
class PauselessPod {
 public:
  /// Errors: kInvalidArgument: its configuration is none.
  static Result<std::unique_ptr<PauselessPod>> Make(const SandboxRequest& request,
                                                    SandboxContext& context);

  /// Nothing is made. Errors: as `HolderRequestOf`.
  Status Check() const;
  /// Makes its files and its holder, and binds that. Errors: as `HolderRequestOf`, `FindHolder`;
  /// what was made is gone then. Blocks: for the holder, up to 30 s.
  Status Start();
  /// After a restart of the engine. `blob`: what was saved; empty: its start had not ended.
  Status TakeUp(const std::string& blob);
  /// As `Sandbox::Stop`, which is what it is for.
  Status Stop(std::chrono::milliseconds limit);
  /// As `Sandbox::Shutdown`.
  Status Shutdown();

  /// config.json of one of its containers, with its files in place. Errors: as `WithPodFiles`.
  Result<std::string> WithFiles(const std::string& spec_json) const;

 private:
  PauselessPod(SandboxRequest request, PodConfig config, SandboxContext& context);

  const SandboxRequest request_;
  const PodConfig config_;
  SandboxContext& context_;
  std::shared_ptr<HostProcess> holder_;
};

}  // namespace gantry

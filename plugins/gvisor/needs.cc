// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/needs.h"

#include <algorithm>
#include <utility>

#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/forward/loopback.h>
#include <gantry/toolkit/forward/relay.h>

#include "plugins/gvisor/launch/flags.h"
#include "plugins/gvisor/launch/proof_file.h"

namespace gantry::gvisor {
namespace {

std::string TextOf(const Runsc& runsc) {
  const bool asks = runsc.dialect.gofer.contains("rpc-fd");
  return Format("{}: {}; rpc-fd: {}; sidecar: {}", runsc.runsc.path, runsc.version,
                asks ? "yes" : "no", runsc.has_sidecar() ? runsc.sentry.path : "none");
}

NodeNeed NeedOfCanary(const Options& options, const Runsc& runsc, const std::string& platform) {
  NodeNeed need{
      .what = Format("canary ({})", platform), .met = false, .optional = false, .detail = {}};
  need.optional = true;
  std::string failure = WhatIsMissing(runsc);
  if (failure.empty()) {
    auto proof = ReadProof(options.root, runsc, platform);
    if (!proof) {
      need.detail = "not run yet; it runs with the first sandbox";
      return need;
    }
    failure = std::move(proof->failure);
  }
  need.met = failure.empty();
  need.detail = need.met ? runsc.runsc.path + " starts sandboxes"
                         : "pods are started by 'runsc create', none is pre-booted: " + failure;
  return need;
}

/// Where the sentry is a program of its own: whether it is of the same release.
NodeNeed NeedOfSidecar(const Runsc& runsc, bool same_release) {
  NodeNeed need{
      .what = "sidecar", .met = !runsc.IsMixed(), .optional = !same_release, .detail = {}};
  if (runsc.IsMixed()) {
    need.detail = Format("'{}': {}", runsc.runsc.path, WhyMixed(runsc));
  } else if (runsc.release.empty() || runsc.sentry_release.empty()) {
    need.detail = runsc.sentry.path + ": of a release that cannot be told";
  } else {
    need.detail = Format("{}: of release '{}', as runsc", runsc.sentry.path, runsc.sentry_release);
  }
  return need;
}

/// Each sandbox is in one of its own.
NodeNeed NeedOfUserNamespaces() {
  constexpr const char* kPath = "/proc/sys/user/max_user_namespaces";
  constexpr size_t kMaxBytes = 64;
  NodeNeed need{.what = "user namespaces", .met = false, .optional = false, .detail = {}};
  const auto text = ReadFile(kPath, kMaxBytes);
  const std::string number = text ? text->substr(0, text->find('\n')) : "";
  need.met = ParseNumber(number).value_or(0) > 0;
  if (need.met) {
    need.detail = Format("up to {}", number);
  } else if (text) {
    need.detail = "none may be made; set the sysctl user.max_user_namespaces";
  } else {
    need.detail = "this kernel has none (CONFIG_USER_NS)";
  }
  return need;
}

NodeNeed NeedOfKvm() {
  constexpr const char* kDevice = "/dev/kvm";
  NodeNeed need{.what = kDevice, .met = Exists(kDevice), .optional = false, .detail = {}};
  need.detail = need.met ? "for platform kvm"
                         : "for platform kvm; load kvm_intel or kvm_amd, or set platform systrap";
  return need;
}

/// Without it pods run, and nothing of theirs can be reached by forwarding.
NodeNeed NeedOfForwarding() {
  NodeNeed need{.what = "port forward", .met = false, .optional = true, .detail = {}};
  const auto program = forward::FindForwardProgram();
  const Status can =
      program ? forward::CanLeadLoopback() : Status(std::unexpected(program.error()));
  need.met = can.has_value();
  need.detail = can ? "BPF programs of type sk_lookup" : can.error().message;
  return need;
}

class Search {
 public:
  explicit Search(RunscRegistry& runscs) : runscs_(runscs) {}

  void Look(const Options& options) {
    const auto flags = MakeFlags(options.runsc_config, {});
    const std::string platform = flags ? flags->platform : Flags().platform;
    if (const auto runsc = LookAtRunsc(options)) {
      if (runsc->has_sidecar()) {
        Add(NeedOfSidecar(*runsc, flags ? flags->same_release : Flags().same_release));
      }
      Add(NeedOfCanary(options, *runsc, platform));
    }
    if (platform == "kvm") {
      Add(NeedOfKvm());
    }
  }

  std::vector<NodeNeed> Take() {
    Add(NeedOfUserNamespaces());
    Add(NeedOfForwarding());
    return std::move(needs_);
  }

 private:
  std::shared_ptr<const Runsc> LookAtRunsc(const Options& options) {
    NodeNeed need{.what = "runsc", .met = false, .optional = false, .detail = {}};
    const auto binary = FindRunsc(options);
    auto runsc = binary ? runscs_.Get(*binary) : std::unexpected(binary.error());
    need.met = runsc.has_value();
    need.detail = runsc ? TextOf(**runsc) : runsc.error().message;
    Add(std::move(need));
    return runsc ? *runsc : nullptr;
  }

  void Add(NodeNeed need) {
    const bool known = std::ranges::any_of(needs_, [&](const NodeNeed& one) {
      return one.what == need.what && one.detail == need.detail;
    });
    if (!known) {
      needs_.push_back(std::move(need));
    }
  }

  RunscRegistry& runscs_;
  std::vector<NodeNeed> needs_;
};

}  // namespace

std::vector<NodeNeed> FindNeeds(const std::vector<Options>& handlers, RunscRegistry& runscs) {
  Search search(runscs);
  for (const Options& options : handlers) {
    search.Look(options);
  }
  return search.Take();
}

}  // namespace gantry::gvisor

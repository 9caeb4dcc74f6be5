// SPDX-License-Identifier: Apache-2.0
//
// A container of an OCI runtime that is a shell script, which does what no real
// one can be brought to do on demand.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/testing/container_context.h>
#include <gantry/testing/sandbox_context.h>

#include "plugins/runc/backend.h"
#include "plugins/runc/sandbox.h"
#include "tests/unit/runc/test_files.h"

namespace gantry::runc {

/// Finds `$ROOT`, `$VERB`, `$PIDFILE` and `$ID` in the arguments. `Made` stands
/// for what crun leaves behind: a process and its state.
inline constexpr const char* kPrologue = R"(#!/bin/sh
ROOT=$2; LOG=$4; shift 6; [ "$1" = --systemd-cgroup ] && shift; VERB=$1; PIDFILE=
while [ $# -gt 0 ]; do [ "$1" = --pid-file ] && PIDFILE=$2; ID=$1; shift; done
made() {
  [ -n "$PIDFILE" ] || return 0
  setsid sh -c 'exec sleep 1000' </dev/null >/dev/null 2>&1 & PID=$!
  mkdir -p $ROOT/$ID; printf $PID > $PIDFILE
  START=$(cut -d' ' -f22 /proc/$PID/stat)
  echo '{"pid": '$PID', "process-start-time": '$START', "cgroup-path": ""}' > $ROOT/$ID/status
}
)";

/// The sub-commands of an OCI runtime that have been run, in order.
inline std::vector<std::string> VerbsOf(const FakeSandboxContext& context) {
  static const std::vector<std::string> known = {"create", "start",      "exec",
                                                 "delete", "checkpoint", "restore"};
  std::vector<std::string> found;
  for (const FakeSandboxContext::Asked& asked : context.asked) {
    const auto verb = std::ranges::find_first_of(asked.argv, known);
    found.push_back(verb == asked.argv.end() ? "" : *verb);
  }
  return found;
}

class RuncContainerTest : public testing::Test {
 protected:
  RuncContainerTest() {
    MakeDir(dir_ / "bundle");
    request_.id = ContainerId::Parse("c1").value_or(ContainerId());
    request_.bundle = dir_ / "bundle";
    request_.spec_json = R"({"linux": {"namespaces": [{"type": "pid"}]}})";
    request_.options_json = "{\"BinaryName\": \"" + dir_ / "oci" + "\", \"Root\": \"" +
                            dir_ / "root" + "\", \"TimeoutMs\": 10000}";
    sandbox_ = *RuncSandbox::Make(SandboxOf(), context_, DefaultOptions());
  }

  static SandboxRequest SandboxOf() {
    SandboxRequest sandbox;
    sandbox.ns = Namespace::Parse("ns").value_or(Namespace());
    return sandbox;
  }

  void Script(const std::string& body) { Write(dir_ / "oci", kPrologue + body, 0755); }

  std::string State() const { return dir_ / "root/ns/c1"; }

  Result<std::unique_ptr<Container>> Create() {
    return sandbox_->CreateContainer(request_, container_);
  }

  /// On a node with systemd, or without.
  Result<std::unique_ptr<Container>> CreateOn(bool systemd) {
    Options options = DefaultOptions();
    options.systemd_directory = systemd ? dir_.path() : dir_ / "absent";
    sandbox_ = *RuncSandbox::Make(SandboxOf(), context_, options);
    return Create();
  }

  Result<std::unique_ptr<Container>> Recover(const std::string& blob) {
    return sandbox_->RecoverContainer(request_, container_, blob);
  }

  TempDir dir_;
  FakeSandboxContext context_{Orphans::kAdopted};
  FakeContainerContext container_{"c1"};
  ContainerRequest request_;
  std::unique_ptr<Sandbox> sandbox_;
};

}  // namespace gantry::runc

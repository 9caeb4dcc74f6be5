// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/harness/calls.h"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <string>

#include <gantry/format.h>

#include "tests/contract/harness/setup.h"

namespace gantry::contract {
namespace {

constexpr size_t kMost = 3;
constexpr size_t kLongest = 400;

/// What the core asks a backend for a call of containerd's.
struct Asked {
  std::string_view method;
  std::string_view of_container;
  std::string_view of_exec;
};

constexpr Asked kAsked[] = {
    {"Create", "SandboxBackend::CreateSandbox, Sandbox::Start, Sandbox::CreateContainer", ""},
    {"Start", "Container::Start", "Process::Start"},
    {"Exec", "", "Container::Exec"},
    {"Kill", "Container::Kill, or KillAll", "Process::Kill"},
    {"Delete", "Container::Delete, Sandbox::Shutdown", "Process::Delete"},
    {"Wait", "ProcessContext::Bind or Exited", "ProcessContext::Bind or Exited"},
    {"State", "", ""},
    {"Pause", "Container::Pause", ""},
    {"Resume", "Container::Resume", ""},
    {"Update", "Container::Update", ""},
    {"Stats", "Container::Stats", ""},
    {"Pids", "Container::Processes", ""},
    {"Checkpoint", "Container::Checkpoint", ""},
    {"ResizePty", "Container::Resize", "Process::Resize"},
    {"CloseIO", "Container::CloseStdin", "Process::CloseStdin"},
};

/// Rules that make several calls at once have several threads.
struct Notes {
  std::mutex mutex;
  std::deque<std::string> calls;
  std::set<std::string> left_out;
};

Notes& TheNotes() {
  static Notes notes;
  return notes;
}

}  // namespace

void NoteCall(std::string_view method, std::string_view container, std::string_view exec,
              const Status& answer) {
  std::string asked;
  for (const Asked& one : kAsked) {
    if (one.method == method) {
      asked = exec.empty() ? one.of_container : one.of_exec;
    }
  }
  std::string text = exec.empty()
                         ? Format("{} of container '{}'", method, container)
                         : Format("{} of exec '{}' in container '{}'", method, exec, container);
  text += asked.empty() ? "" : " (" + asked + ")";
  text += ": " + (answer ? std::string("ok")
                         : Format("{} {}", CodeName(answer.error().code), answer.error().message)
                               .substr(0, kLongest));
  const std::lock_guard lock(TheNotes().mutex);
  std::deque<std::string>& calls = TheNotes().calls;
  if (calls.empty() || calls.back() != text) {
    calls.push_back(std::move(text));
  }
  if (calls.size() > kMost) {
    calls.pop_front();
  }
}

std::vector<std::string> NotedCalls() {
  const std::lock_guard lock(TheNotes().mutex);
  return {TheNotes().calls.begin(), TheNotes().calls.end()};
}

void ForgetCalls() {
  const std::lock_guard lock(TheNotes().mutex);
  TheNotes().calls.clear();
}

bool IsLeftOut(std::string_view call, Code answer) {
  constexpr std::array<std::string_view, 7> kOptional = {
      "Exec", "Pause", "Resume", "Update", "Checkpoint", "Stats", "ResizePty"};
  if (!TheSetup().anybodys || answer != Code::kUnimplemented ||
      !std::ranges::contains(kOptional, call)) {
    return false;
  }
  // Else a failure of what is left of the rule would count as this.
  TheObserved().not_supported.clear();
  const std::lock_guard lock(TheNotes().mutex);
  TheNotes().left_out.insert(std::string(call));
  return true;
}

std::set<std::string> CallsLeftOut() {
  const std::lock_guard lock(TheNotes().mutex);
  return TheNotes().left_out;
}

}  // namespace gantry::contract

// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/harness/contract_test.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <sstream>
#include <system_error>

#include "core/ctl/client.h"
#include "tests/contract/harness/calls.h"
#include "tests/contract/harness/consoles.h"
#include "tests/contract/harness/inside.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

struct Row {
  std::string_view backend;
  std::string_view row;
};

// Every row that a backend does not have. A test asserts what it does instead.
constexpr std::array kNotSupported = {
    Row{"remote", "checkpoint"},
    Row{"remote", "pod files"},
    Row{"remote", kConfinement},
    Row{"gvisor", kPathsOfTheImage},
    Row{"gvisor", kLimitsOfExecs},
    // What its Start saves is part of the record, too.
    Row{"gvisor", "starts without what was saved"},
    Row{"gvisor", kOwnProcesses},
    Row{"remote", kOwnProcesses},
    Row{"gvisor", kWithoutTheFirst},
    Row{"wasm", "checkpoint"},
    Row{"vmm", "checkpoint"},
    Row{"vmm", kOwnProcesses},
    Row{"vmm", "many at once"},
    // Which is the machine's root.
    Row{"vmm", kWithoutTheFirst},
};

/// What the keeper has started: with the option `template: N` the machines that wait, too.
std::vector<e2e::HostProcess> HelpersOf(const Node& node) {
  return e2e::Processes([&](const e2e::HostProcess& process) {
    return process.parent == node.keeper() && process.name != "gantryd";
  });
}

/// A connection to the events' socket may come and go.
constexpr int kDescriptorSlack = 2;

class Environment : public ::testing::Environment {
 public:
  void SetUp() override {
    Renew();
    if (TheSetup().anybodys && node_->unavailable().empty()) {
      // Without it every rule would say the same. A fatal failure here runs no test.
      ASSERT_EQ(failure_, "") << "no rule is tried before a first container has lived";
    }
  }

  /// A gantry that nobody has used.
  void Renew() {
    const std::lock_guard lock(mutex_);
    node_.reset();
    node_ = std::make_unique<Node>();
    if (!node_->unavailable().empty()) {
      return;
    }
    failure_ = node_->Start();
    for (const std::string& backend : BackendNames()) {
      if (failure_.empty()) {
        failure_ = WarmUp(backend);
      }
    }
    if (failure_.empty()) {
      AwaitReady();
    }
    baseline_ = Measure();
    log_begin_ = LogSize();
  }

  /// Of a backend that keeps sandboxes ready (`template: N`): what it holds with all of them.
  void AwaitReady() {
    EXPECT_TRUE(e2e::Eventually(
        [&] {
          auto engine = ctl::OperatorClient::Connect(node_->run_dir() + "/gantry.sock");
          if (!engine) {
            return false;
          }
          const auto status = engine->EngineStatus();
          if (!status) {
            return false;
          }
          uint64_t wanted = 0;
          uint64_t ready = 0;
          for (const auto& backend : status->backends()) {
            for (const auto& count : backend.counts()) {
              wanted += count.name() == "warm_wanted" ? count.value() : 0;
              ready += count.name() == "warm_ready" ? count.value() : 0;
            }
          }
          return ready == wanted;
        },
        e2e::kLong))
        << node_->Log();
  }

  void TearDown() override {
    const std::lock_guard lock(mutex_);
    node_.reset();
  }

  /// What is opened once and kept is open after the first container.
  std::string WarmUp(const std::string& backend) {
    Box box(*node_, "warm-" + backend, backend, {.args = {"true"}});
    if (!box.Announce()) {
      return "announce the first container: " + node_->Log();
    }
    const auto created = box.Create();
    const auto started = box.Start();
    const auto ended = box.Wait();
    const Status finished = box.Finish();
    if (!created || !started || !ended || !finished) {
      return "the first container of '" + backend +
             "', whose program is 'true': " + Failed("Create", created) + Failed("Start", started) +
             Failed("Wait", ended) + Failed("Delete", finished) +
             (TheSetup().anybodys && !TheSetup().verbose ? "" : "\n" + node_->Log());
    }
    node_->containerd().WaitForTopics(box.id(), 4);
    return "";
  }

  template <class T>
  static std::string Failed(const char* call, const Result<T>& result) {
    return result ? "" : std::string(call) + ": " + MessageOf(result) + "; ";
  }

  /// Since the rule began.
  std::string LogOfRule() const {
    const std::string log = e2e::ReadText(node_->log_path());
    return log.substr(std::min(log_begin_, log.size()));
  }

  size_t LogSize() const {
    std::error_code error;
    const auto size = std::filesystem::file_size(node_->log_path(), error);
    return error ? 0 : static_cast<size_t>(size);
  }

  /// What the core has said against a backend since the rule began: the lines that are an
  /// operator's errors. One that recovers nothing, or leaves processes behind, is put right by
  /// the core, so that nothing else would show it.
  std::string Accusations() const {
    std::istringstream lines(LogOfRule());
    std::string said;
    for (std::string line; std::getline(lines, line);) {
      if (line.contains("level=error") &&
          (line.contains("its backend cannot recover it") || line.contains("behind: killed"))) {
        said += line.substr(line.find("msg=")) + "\n";
      }
    }
    return said;
  }

  std::string Consoles() const { return ConsolesOf(node_->root(), LogOfRule()); }

  Baseline Measure() const {
    Baseline now;
    now.helpers = HelpersOf(*node_).size();
    if (const auto status = node_->Query()) {
      now.stored = status->descriptors_stored;
      now.watched = status->processes_watched;
      now.keeper_fds = e2e::CountDescriptors(status->keeper_pid);
      now.engine_fds = e2e::CountDescriptors(status->engine_pid);
    }
    return now;
  }

  /// Whoever makes or removes the node.
  std::mutex mutex_;
  std::unique_ptr<Node> node_;
  std::string failure_;
  Baseline baseline_;
  /// Of the engine's log, where the rule began.
  size_t log_begin_ = 0;
};

Environment* const environment = static_cast<Environment*>(
    ::testing::AddGlobalTestEnvironment(std::make_unique<Environment>().release()));

void Say(std::string& report, const char* what, uint64_t now, uint64_t before) {
  if (now > before) {
    report += std::string(what) + ": " + std::to_string(now) + " instead of " +
              std::to_string(before) + "\n";
  }
}

std::string Look(const std::string& prefix) {
  const Node& node = *environment->node_;
  const Baseline& before = environment->baseline_;
  std::string report;
  const auto status = node.Query();
  if (!status) {
    return "the keeper does not answer: " + status.error().message;
  }
  Say(report, "instances", status->instances.size(), 0);
  Say(report, "sockets", status->sockets, 1);
  Say(report, "requests waiting", status->requests_waiting, 0);
  Say(report, "exits kept", status->exits_kept, 0);
  Say(report, "tombstones", status->tombstones, 0);
  Say(report, "descriptors stored", status->descriptors_stored, before.stored);
  Say(report, "processes watched", status->processes_watched, before.watched);
  Say(report, "descriptors of the keeper",
      static_cast<uint64_t>(e2e::CountDescriptors(status->keeper_pid)),
      static_cast<uint64_t>(before.keeper_fds + kDescriptorSlack));
  Say(report, "descriptors of the engine",
      static_cast<uint64_t>(e2e::CountDescriptors(status->engine_pid)),
      static_cast<uint64_t>(before.engine_fds + kDescriptorSlack));
  for (const std::string& point : e2e::MountsBelow(node.root() + "/bundles")) {
    report += "mount " + point + "\n";
  }
  for (const std::string& folder : e2e::CgroupFolders(node.cgroup())) {
    for (const std::string& path : e2e::FindNames(folder, prefix)) {
      report += "cgroup " + path + "\n";
    }
  }
  for (const std::string& name : e2e::ListFolder(node.root() + "/oci/" + kNamespace)) {
    if (!name.starts_with('.')) {  // crun keeps compiled seccomp profiles in `.cache`.
      report += "OCI state " + name + "\n";
    }
  }
  auto processes = e2e::ProcessesInCgroup(node.cgroup() + "/");
  const auto helpers = HelpersOf(node);
  if (helpers.size() > before.helpers) {
    processes.insert(processes.end(), helpers.begin(), helpers.end());
  }
  if (!processes.empty()) {
    report += "processes" + e2e::Describe(processes) + "\n";
  }
  return report;
}

}  // namespace

void EndAllTests() {
  environment->mutex_.lock();  // For good.
  if (environment->node_) {
    environment->node_->Clean();
  }
}

bool IsSupported(std::string_view backend, std::string_view row) {
  for (const Row& one : kNotSupported) {
    if (one.backend == backend && one.row == row) {
      return false;
    }
  }
  return true;
}

bool Signal(pid_t pid, int signal) { return pid > 0 && kill(pid, signal) == 0; }

Node& ContractTest::node() { return *environment->node_; }

void ContractTest::SetUp() {
  static int counter = 0;
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "t%04d", ++counter);
  prefix_ = text.data();
  TheObserved() = {};
  ForgetCalls();
  if (!node().unavailable().empty()) {
    GTEST_SKIP() << node().unavailable();
  }
  ASSERT_EQ(environment->failure_, "");
  environment->log_begin_ = environment->LogSize();
}

void ContractTest::TearDown() {
  if (!node().unavailable().empty() || !environment->failure_.empty()) {
    return;
  }
  std::string consoles = HasFailure() ? environment->Consoles() : "";
  for (Box& box : boxes_) {
    const Status finished = box.Finish();
    EXPECT_TRUE(finished.has_value()) << box.id() << ": " << MessageOf(finished);
    TheObserved().left |= !finished.has_value();
  }
  std::string left;
  e2e::Eventually(
      [&] {
        left = Look(prefix_);
        return left.empty();
      },
      e2e::Bound(std::chrono::seconds(10)));
  EXPECT_EQ(left, "") << "left after the test";
  TheObserved().left |= !left.empty();
  const std::string said = environment->Accusations();
  EXPECT_EQ(said, "") << "the core's log says of the backend: " << said;
  // What it has declared that it has not, it cannot recover either.
  TheObserved().left |= !said.empty() && TheObserved().not_supported.empty();
  if (HasFailure()) {
    consoles = consoles.empty() ? environment->Consoles() : consoles;
    if (!consoles.empty()) {
      ADD_FAILURE() << "its guests have said:\n" << consoles;
    }
    if (!TheSetup().anybodys || TheSetup().verbose) {
      std::fprintf(stderr, "--- the keeper's and the engine's log:\n%s---\n", node().Log().c_str());
    }
    // What this test left is not the next one's fault.
    environment->Renew();
  }
}

std::string ContractTest::Id(std::string_view suffix) const {
  return prefix_ + std::string(suffix);
}

Box& ContractTest::Announced(BoxOptions options, std::string_view suffix) {
  Box& box = boxes_.emplace_back(node(), Id(suffix), backend(), std::move(options));
  EXPECT_TRUE(box.Announce()) << node().Log();
  return box;
}

Box& ContractTest::Created(BoxOptions options, std::string_view suffix) {
  Box& box = Announced(std::move(options), suffix);
  EXPECT_OK(box.Create());
  return box;
}

Box& ContractTest::Running(BoxOptions options, std::string_view suffix) {
  Box& box = Created(std::move(options), suffix);
  EXPECT_OK(box.Start());
  return box;
}

Box& ContractTest::Paused() {
  Box& box = Running();
  EXPECT_OK(box.Pause());
  return box;
}

Box& ContractTest::Stopped() {
  Box& box = Running({.args = {"sh", "-c", "exit 7"}});
  const auto ended = box.Wait();
  EXPECT_OK(ended);
  EXPECT_EQ(ended ? ended->exit_status() : 0U, 7U);
  return box;
}

void ContractTest::Finish(Box& box) {
  const Status finished = box.Finish();
  EXPECT_TRUE(finished.has_value()) << box.id() << ": " << MessageOf(finished);
  boxes_.remove_if([&](const Box& one) { return &one == &box; });
}

}  // namespace gantry::contract

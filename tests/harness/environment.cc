// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/environment.h"

#include "tests/harness/e2e_test.h"

namespace gantry::e2e {
namespace {

Environment* instance = nullptr;

}  // namespace

Environment::Environment(const Settings& settings) : node_(settings) { instance = this; }

Environment& Environment::Get() { return *instance; }

void Environment::SetUp() {
  if (!unavailable().empty()) {
    return;
  }
  failure_ = node_.SetUp();
  if (failure_.empty() && !node_.settings().stock()) {
    WarmUp();
  }
}

// What is opened once and kept (the connection for events, the log) is open
// after the first container.
void Environment::WarmUp() {
  const Words words{"run",        "--rm",           "--runtime", node_.settings().runtime,
                    "--fifo-dir", node_.fifo_dir(), kImage,      "warm",
                    "true"};
  const Output output = node_.Ctr(words);
  if (output.status != 0) {
    failure_ =
        "the first container: " + output.Text() + "\ncontainerd: " + ReadText(node_.log_path());
    return;
  }
  const std::string left = Leftovers(node_, {}, "warm", known_leftovers_);
  if (!left.empty()) {
    failure_ = "the first container left " + left;
    return;
  }
  baseline_ = ReadBaseline(node_);
}

void Environment::TearDown() { node_.KillContainerd(); }

}  // namespace gantry::e2e

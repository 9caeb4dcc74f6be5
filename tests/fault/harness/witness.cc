// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/harness/witness.h"

#include <sstream>

#include <gtest/gtest.h>

#include "tests/harness/e2e_test.h"

namespace gantry::fault {
namespace {

constexpr int kExitCode = 9;

std::vector<std::string> RunWords(const e2e::Node& node, const e2e::Settings& settings,
                                  const std::string& id) {
  return node.CtrWords({"run", "--rm", "--runtime", settings.runtime, "--fifo-dir", node.fifo_dir(),
                        e2e::kImage, id, "sh", "-c",
                        "trap 'end=1' TERM; i=0; while [ -z \"$end\" ]; do echo $i; i=$((i+1)); "
                        "usleep 5000; done; echo last $i; exit " +
                            std::to_string(kExitCode)});
}

}  // namespace

Witness::Witness(const e2e::Node& node, const e2e::Settings& settings, std::string id)
    : node_(node), id_(std::move(id)), program_(RunWords(node, settings, id_)) {
  EXPECT_TRUE(program_.ReadUntil("10\n")) << program_.err();
}

void Witness::Testify() {
  const e2e::Output killed = node_.Ctr({"tasks", "kill", "-s", "TERM", id_});
  EXPECT_EQ(killed.status, 0) << killed.Text();
  EXPECT_EQ(program_.Wait(), kExitCode) << program_.err();
  std::istringstream lines(program_.out());
  std::string line;
  size_t next = 0;
  while (std::getline(lines, line) && line == std::to_string(next)) {
    ++next;
  }
  EXPECT_EQ(line, "last " + std::to_string(next)) << "a byte of its output was lost";
}

}  // namespace gantry::fault

// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/ctr_run.h"

#include "tests/harness/program.h"

namespace gantry::bench {
namespace {

std::vector<std::string> RunWords(Lab& lab, const Side& side, const e2e::Node& node,
                                  const CtrProgram& program) {
  std::vector<std::string> words{"run",        "--rm",       "--runtime",
                                 side.runtime, "--fifo-dir", node.fifo_dir()};
  if (side.stock) {
    words.insert(words.end(), {"--runc-binary", side.oci});
  }
  words.insert(words.end(), program.flags.begin(), program.flags.end());
  words.insert(words.end(), {program.image, lab.NewId(side)});
  words.insert(words.end(), program.argv.begin(), program.argv.end());
  return words;
}

}  // namespace

Result<Phases> OneCtrRun(Lab& lab, const Side& side, const e2e::Node& node,
                         const CtrProgram& program) {
  const std::vector<std::string> words = node.CtrWords(RunWords(lab, side, node, program));
  Phases phases;
  const auto begin = Clock::now();
  const e2e::Output output = e2e::RunProgram(words);
  phases.Add("ctr run", MillisecondsSince(begin));
  if (output.status != 0) {
    return Fail(Code::kInternal, "ctr run with {}: {}", side.runtime, output.Text());
  }
  return phases;
}

Result<Pair> CompareCtrRuns(Lab& lab, const Side& ours, const Side& peer, const CtrProgram& program,
                            int warm, int rounds) {
  GANTRY_TRY(const e2e::Node* node, lab.Containerd());
  return Alternate(
      warm, rounds, [&] { return OneCtrRun(lab, ours, *node, program); },
      [&] { return OneCtrRun(lab, peer, *node, program); });
}

}  // namespace gantry::bench

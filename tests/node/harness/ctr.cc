// SPDX-License-Identifier: Apache-2.0
#include "tests/node/harness/ctr.h"

#include <atomic>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "tests/harness/host.h"

namespace gantry::node {

std::string Oci() {
  const char* const oci = std::getenv("GANTRY_E2E_OCI");  // NOLINT(concurrency-mt-unsafe)
  return oci == nullptr ? "crun" : oci;
}

Words CtrWords(const Words& words) {
  Words all{"ctr", "-n", kNamespace};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

e2e::Output Ctr(const Words& words) { return e2e::RunProgram(CtrWords(words)); }

Words CtrRunWords(const std::string& id, const Words& command, const Words& flags) {
  Words words{"run", "--runtime", "io.containerd.gantry-" + Oci() + ".v1"};
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), {kImage, id});
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

e2e::Output CtrRun(const std::string& id, const Words& command, const Words& flags) {
  return Ctr(CtrRunWords(id, command, flags));
}

e2e::Output Exec(const std::string& id, const Words& command) {
  static std::atomic<int> counter = 0;
  Words words{"tasks", "exec", "--exec-id", "x" + std::to_string(++counter), id};
  words.insert(words.end(), command.begin(), command.end());
  return Ctr(words);
}

e2e::Task FindTask(const std::string& id) { return e2e::TaskIn(Ctr({"tasks", "ls"}).out, id); }

int DeleteTask(const std::string& id) {
  constexpr std::string_view kCode = "exit code ";
  int code = -1;
  // It is refused until containerd knows of the end.
  e2e::Eventually([&] {
    const e2e::Output deleted = Ctr({"tasks", "delete", id});
    const size_t at = deleted.err.find(kCode);
    if (at != std::string::npos) {
      code = std::atoi(&deleted.err[at + kCode.size()]);
    }
    return at != std::string::npos;
  });
  return code;
}

std::string Remove(const std::string& id) {
  // Its status is that of the container; the container goes only when the task has.
  const e2e::Output killed = Ctr({"tasks", "rm", "-f", id});
  const e2e::Output removed = Ctr({"containers", "rm", id});
  return removed.status == 0 ? "" : killed.err + removed.Text();
}

std::vector<std::string> Containers() {
  std::vector<std::string> ids;
  std::istringstream lines(Ctr({"containers", "ls", "-q"}).out);
  for (std::string line; std::getline(lines, line);) {
    ids.push_back(line);
  }
  return ids;
}

}  // namespace gantry::node

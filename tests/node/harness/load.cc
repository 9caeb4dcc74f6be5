// SPDX-License-Identifier: Apache-2.0
#include "tests/node/harness/load.h"

#include <sstream>

#include "tests/harness/host.h"
#include "tests/harness/task_list.h"

namespace gantry::node {

Load::Load(const std::string& id, pid_t pid, int execs) {
  for (int i = 0; i < execs; ++i) {
    clients_.push_back(std::async(std::launch::async, [=, this] { return ExecAgainAndAgain(id); }));
  }
  clients_.push_back(
      std::async(std::launch::async, [=, this] { return AskForTheStateAgainAndAgain(id, pid); }));
}

Load::~Load() { over_ = true; }

bool Load::Works() {
  const int before = calls_;
  const int all = static_cast<int>(clients_.size());
  return e2e::Eventually([&] { return calls_ >= before + all; });
}

Load::Failures Load::End() {
  over_ = true;
  Failures all;
  for (std::future<Failures>& client : clients_) {
    const Failures failures = client.get();
    all.insert(all.end(), failures.begin(), failures.end());
  }
  clients_.clear();
  return all;
}

Load::Failures Load::ExecAgainAndAgain(const std::string& id) {
  Failures failures;
  for (int code = 1; !over_ || code == 1; code = code % 100 + 1) {
    const e2e::Output output = Exec(id, {"sh", "-c", "echo said; exit " + std::to_string(code)});
    if (output.status != code || output.out != "said\n") {
      failures.push_back(output.Text());
    }
    ++calls_;
  }
  return failures;
}

Load::Failures Load::AskForTheStateAgainAndAgain(const std::string& id, pid_t pid) {
  Failures failures;
  do {
    const e2e::Output output = Ctr({"tasks", "ls"});
    const e2e::Task task = e2e::TaskIn(output.out, id);
    if (task.state != "RUNNING" || task.pid != pid) {
      failures.push_back(output.Text());
    }
    ++calls_;
  } while (!over_);
  return failures;
}

e2e::Program Counter(const std::string& id, bool terminal) {
  e2e::Program::Options options;
  options.terminal = terminal;
  Words flags{"--rm", "--cgroup", "system.slice:gantry:" + id};
  if (terminal) {
    flags.emplace_back("-t");
  }
  return {CtrWords(CtrRunWords(id,
                               {"sh", "-c",
                                "i=0; until [ -e /stop ]; do i=$((i+1)); echo \"line $i.\"; "
                                "sleep 0.05; done; exit 42"},
                               flags)),
          options};
}

std::string Gap(const std::string& out) {
  std::istringstream lines(out);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    std::erase(line, '\r');
    const std::string wanted = "line " + std::to_string(++number) + ".";
    if (line != wanted) {
      return "'" + line + "' instead of '" + wanted + "'";
    }
  }
  return number == 0 ? "no line" : "";
}

}  // namespace gantry::node

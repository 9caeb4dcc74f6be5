// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/execution_trace.h"

#include <signal.h>

#include <sstream>

#include <gtest/gtest.h>

namespace gantry::e2e {
namespace {

/// `from` a quote to the next one that is not escaped; moves `at` behind it.
std::string QuotedWord(const std::string& line, size_t& at) {
  std::string text;
  for (++at; at < line.size() && line[at] != '"'; ++at) {
    at += line[at] == '\\' ? 1 : 0;
    text += line.substr(at, 1);
  }
  ++at;
  return text;
}

/// `PID execveat(7</a/program>, "", ["name", "argument"], ...` or
/// `PID execve("/a/program", ["name", ...`; no words: it is neither.
Execution ParseExecution(const std::string& line) {
  Execution execution;
  size_t at = line.find("execve");
  at = at == std::string::npos ? at : line.find('(', at);
  const size_t words = at == std::string::npos ? at : line.find('[', at);
  if (words == std::string::npos) {
    return execution;
  }
  if (line[++at] == '"') {
    execution.program = QuotedWord(line, at);
  } else if (const size_t name = line.find('<', at); name < words) {
    execution.program = line.substr(name + 1, line.find('>', name) - name - 1);
  }
  for (at = words + 1; at < line.size() && line[at] == '"'; at += 2) {
    execution.words.push_back(QuotedWord(line, at));
    if (line.compare(at, 2, ", ") != 0) {
      break;
    }
  }
  return execution;
}

std::vector<std::string> StraceWords(const Node& node, const std::string& path) {
  std::vector<std::string> words{"strace", "-f", "--detach-on=execve",    "-y", "-v",          "-s",
                                 "10000",  "-e", "trace=execve,execveat", "-e", "signal=none", "-o",
                                 path};
  for (const HostProcess& process : {node.Keeper(), node.Engine()}) {
    words.insert(words.end(), {"-p", std::to_string(process.pid)});
  }
  return words;
}

std::string NewPath(const Node& node) {
  static int counter = 0;
  return node.settings().root + "/executions" + std::to_string(++counter);
}

}  // namespace

std::string Execution::Text() const {
  std::string text = program + ":";
  for (const std::string& word : words) {
    text += " " + word;
  }
  return text;
}

ExecutionTrace::ExecutionTrace(const Node& node)
    : path_(NewPath(node)), program_(StraceWords(node, path_)) {
  // It says so once for each.
  EXPECT_TRUE(program_.ReadWhile([&] {
    const size_t first = program_.err().find(" attached");
    return first != std::string::npos &&
           program_.err().find(" attached", first + 1) != std::string::npos;
  })) << program_.err();
}

std::vector<Execution> ExecutionTrace::Finish() {
  program_.Kill(SIGINT);
  program_.Wait();
  std::vector<Execution> executions;
  std::istringstream lines(ReadText(path_));
  for (std::string line; std::getline(lines, line);) {
    Execution execution = ParseExecution(line);
    if (!execution.words.empty()) {
      executions.push_back(std::move(execution));
    }
  }
  return executions;
}

}  // namespace gantry::e2e

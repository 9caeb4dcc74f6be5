// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/init/arguments.h"

#include <fcntl.h>

#include <algorithm>
#include <climits>
#include <iterator>
#include <string_view>

#include <gantry/number.h>

namespace gantry::init {
namespace {

struct Option {
  std::string_view name;
  int Arguments::* descriptor;
};

constexpr Option kOptions[] = {
    {"--config", &Arguments::config},    {"--process", &Arguments::process},
    {"--init", &Arguments::init},        {"--gate", &Arguments::gate},
    {"--result", &Arguments::result},    {"--console", &Arguments::console},
    {"--listener", &Arguments::listener}};

Result<int> DescriptorOf(const std::string& word, std::string_view value) {
  const auto number = ParseNumber(value);
  const int fd = number && *number > 2 && *number < INT_MAX ? static_cast<int>(*number) : -1;
  if (fd < 0 || ::fcntl(fd, F_GETFD) < 0) {
    return Fail(Code::kInvalidArgument, "read arguments: '{}': not an open descriptor above 2",
                word);
  }
  return fd;
}

}  // namespace

const char* Usage() {
  return "usage: gantry-init --bundle=PATH --config=FD [--gate=FD] [--result=FD] [--console=FD]\n"
         "                   [--listener=FD] [--pass=FD]... [--id=ID] [--sibling]\n"
         "       gantry-init exec --init=PIDFD --process=FD ... as above\n";
}

Result<Arguments> ReadArguments(const std::vector<std::string>& words) {
  Arguments out;
  for (const std::string& word : words) {
    const size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    const std::string value = equals == word.size() ? std::string() : word.substr(equals + 1);
    const auto option = std::ranges::find(kOptions, name, &Option::name);
    if (option != std::end(kOptions)) {
      GANTRY_TRY(out.*(option->descriptor), DescriptorOf(word, value));
    } else if (name == "--pass") {
      GANTRY_TRY(const int fd, DescriptorOf(word, value));
      out.passed_on.push_back(fd);
    } else if (name == "--bundle") {
      out.bundle = value;
    } else if (name == "--id") {
      out.id = value;
    } else if (word == "exec" && &word == &words.front()) {
      out.exec = true;
    } else if (word == "--sibling") {
      out.sibling = true;
    } else {
      return Fail(Code::kInvalidArgument, "read arguments: '{}' is not known", word);
    }
  }
  if (!out.bundle.starts_with('/')) {
    return Fail(Code::kInvalidArgument, "read arguments: --bundle='{}': not an absolute path",
                out.bundle);
  }
  if (out.config < 0) {
    return Fail(Code::kInvalidArgument, "read arguments: no --config");
  }
  if (out.exec && (out.process < 0 || out.init < 0)) {
    return Fail(Code::kInvalidArgument, "read arguments: exec without --init or --process");
  }
  if (!out.exec && (out.process >= 0 || out.init >= 0)) {
    return Fail(Code::kInvalidArgument, "read arguments: --init and --process are of exec");
  }
  return out;
}

}  // namespace gantry::init

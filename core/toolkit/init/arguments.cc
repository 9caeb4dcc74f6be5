// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/init/arguments.h"

#include <fcntl.h>

#include <algorithm>
#include <climits>
#include <iterator>
#include <string_view>

#include <gantry/format.h>
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

// Of the words that all of these programs have; false: it is none.
Result<bool> TakeCommonWord(const std::string& name, const std::string& value, Arguments& out) {
  const auto option = std::ranges::find(kOptions, name, &Option::name);
  if (option != std::end(kOptions)) {
    GANTRY_TRY(out.*(option->descriptor), DescriptorIn(name, value));
  } else if (name == "--pass") {
    GANTRY_TRY(const int fd, DescriptorIn(name, value));
    out.passed_on.push_back(fd);
  } else if (name == "--bundle") {
    out.bundle = value;
  } else if (name == "--id") {
    out.id = value;
  } else if (name == "--sibling" && value.empty()) {
    out.sibling = true;
  } else {
    return false;
  }
  return true;
}

Status CheckWhole(const Arguments& out) {
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
  return {};
}

}  // namespace

Result<int> DescriptorIn(const std::string& name, const std::string& value) {
  const auto number = ParseNumber(value);
  const int fd = number && *number > 2 && *number < INT_MAX ? static_cast<int>(*number) : -1;
  if (fd < 0 || ::fcntl(fd, F_GETFD) < 0) {
    return Fail(Code::kInvalidArgument, "read arguments: '{}={}': not an open descriptor above 2",
                name, value);
  }
  return fd;
}

std::string Usage(const GatedProgram& of) {
  return Format(
      "usage: {0} --bundle=PATH --config=FD [--gate=FD] [--result=FD] [--console=FD]\n"
      "           [--listener=FD] [--pass=FD]... [--id=ID] [--sibling]{1}{2}\n"
      "       {0} exec --init=PIDFD --process=FD ... as above\n",
      of.name, of.usage.empty() ? "" : "\n           ", of.usage);
}

Result<Arguments> ReadArguments(const std::vector<std::string>& words, const GatedProgram& of) {
  Arguments out;
  for (const std::string& word : words) {
    const size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    const std::string value = equals == word.size() ? std::string() : word.substr(equals + 1);
    if (word == "exec" && &word == &words.front()) {
      out.exec = true;
      continue;
    }
    GANTRY_TRY(bool taken, TakeCommonWord(name, value, out));
    if (!taken && of.take_word) {
      GANTRY_TRY(taken, of.take_word(name, value));
    }
    if (!taken) {
      return Fail(Code::kInvalidArgument, "read arguments: '{}' is not known", word);
    }
  }
  GANTRY_CHECK_OK(CheckWhole(out));
  return out;
}

}  // namespace gantry::init

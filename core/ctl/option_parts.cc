// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/option_parts.h"

#include <boost/program_options.hpp>

namespace gantry::ctl {
namespace {

namespace po = boost::program_options;

}  // namespace

std::vector<Help::Option> PartsOf(const po::options_description& options) {
  std::vector<Help::Option> parts;
  for (const auto& option : options.options()) {
    const std::string letter =
        option->canonical_display_name(po::command_line_style::allow_dash_for_short);
    parts.push_back({option->long_name(),
                     letter.size() == 2 ? letter.substr(1) : "",
                     option->semantic()->max_tokens() == 0 ? "" : option->semantic()->name(),
                     option->description(),
                     {}});
  }
  return parts;
}

}  // namespace gantry::ctl

// SPDX-License-Identifier: Apache-2.0
//
// Options as --help has them, in parts: what manual page and completions are made of.
#pragma once

#include <vector>

#include <boost/program_options/options_description.hpp>

#include "core/ctl/arguments.h"

namespace gantry::ctl {

/// In their order. Which commands they are for is left empty. Thread: any. Blocks: never.
std::vector<Help::Option> PartsOf(const boost::program_options::options_description& options);

}  // namespace gantry::ctl

// SPDX-License-Identifier: Apache-2.0
//
// `gantryctl debug dump`: what somebody who was not there needs in order to understand a fault, in
// one archive.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

#include "core/ctl/arguments.h"

namespace gantry::ctl {

/// A file of the archive.
struct DumpFile {
  std::string name;
  /// For the reader: what it is.
  std::string about;
  std::string text;
};

/// All that can be had. What cannot be is a file that says why. Secrets are left out (redact.h).
/// Blocks: for the keeper, the engine and the scraper, up to ten seconds each; for tools.
std::vector<DumpFile> CollectDump(const Arguments& arguments);

/// Packs `files` and a README.txt that names them into `archive`, mode 0600.
/// Errors: kAlreadyExists; the errno's; kFailedPrecondition: tar or gzip fails. Then there is no
/// archive.
Status PackDump(const std::vector<DumpFile>& files, const std::string& archive);

/// `debug dump [FILE]`. Gives where it is and what is in it. Errors: as `PackDump`;
/// kInvalidArgument.
Result<std::string> Debug(const Arguments& arguments);

}  // namespace gantry::ctl

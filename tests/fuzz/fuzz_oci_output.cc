// SPDX-License-Identifier: Apache-2.0
//
// What an OCI runtime and criu print and keep: lines of their logs, the state of a container,
// `features`; and the spec, as the runc backend reads it.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "plugins/runc/documents.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {
namespace {

/// A directory with the files that runtimes keep, which are rewritten for each input.
const std::string& StateDirectory() {
  static const std::string directory = [] {
    std::string name = "/tmp/fuzz-oci-output-XXXXXX";
    Require(mkdtemp(name.data()) != nullptr, "there is a place for files");
    return name;
  }();
  return directory;
}

void LookAtState(const char* name, const std::string& text) {
  const std::string path = StateDirectory() + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  const runc::RuntimeState state = runc::ReadState(StateDirectory());
  Require(state.pid.value >= 0, "a pid is none, or one");
  unlink(path.c_str());
}

}  // namespace

void FuzzOne(std::string_view input) {
  const uint8_t kind = TakeByte(input);
  const std::string text(input);
  switch (kind % 5) {
    case 0:
      Require(runc::LastLogError(text).size() <= text.size() * 3, "an error is a part of the log");
      runc::FirstCriuError(text);
      break;
    case 1:
      runc::PromisesIdmappedMounts(text);
      break;
    case 2:
      LookAtState("state.json", text);
      break;
    case 3:
      LookAtState("status", text);
      break;
    default:
      static_cast<void>(runc::ReadSpec(text));
  }
}

}  // namespace gantry::fuzz

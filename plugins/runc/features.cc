// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/features.h"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <string_view>

#include <nlohmann/json.hpp>

#include <gantry/fingerprint.h>
#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/ask_program.h>

namespace gantry::runc {
namespace {

constexpr JsonLimits kFeaturesJson = {.bytes = size_t{256} << 10, .depth = 32, .values = 10'000};
constexpr size_t kMaxIdentityBytes = 8192;
constexpr size_t kMaxKept = 64;

/// One line that is another one for any other file there.
Result<std::string> IdentityOf(const std::string& binary) {
  struct stat info{};
  if (stat(binary.c_str(), &info) != 0) {
    return FailErrno(errno, "look at the OCI runtime '{}'", binary);
  }
  return Format("{} {}:{} {} {}.{} {}.{}\n", binary, info.st_dev, info.st_ino, info.st_size,
                info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                info.st_ctim.tv_nsec);
}

/// Another binary's answer may be of use to nobody, a damaged one never.
bool IsFeatures(std::string_view text) { return ReadJson(text, kFeaturesJson).is_object(); }

/// Empty: nothing is kept of this file.
std::string Kept(const std::string& path, const std::string& identity) {
  const auto text = ReadFile(path, kFeaturesJson.bytes + kMaxIdentityBytes);
  if (!text || !text->starts_with(identity)) {
    return {};
  }
  std::string document = text->substr(identity.size());
  return IsFeatures(document) ? document : std::string();
}

void Keep(const std::string& dir, const std::string& path, const std::string& text) {
  const auto names = ListDirectory(dir);
  if (!names || (names->size() >= kMaxKept && !Exists(path))) {
    return;
  }
  IgnoreError(ReplaceFile(path, text, 0600), "without the file it is asked again, that is all");
}

}  // namespace

Result<std::string> FeaturesOf(const std::string& binary, const std::string& keep_dir) {
  GANTRY_TRY(const std::string identity, IdentityOf(binary));
  const std::string path =
      keep_dir.empty() ? std::string() : Format("{}/{:016x}.json", keep_dir, Fingerprint(binary));
  if (!path.empty()) {
    if (std::string document = Kept(path, identity); !document.empty()) {
      return document;
    }
  }
  GANTRY_TRY(std::string document, AskProgram({.program = binary,
                                               .arguments = {"features"},
                                               .max_bytes = kFeaturesJson.bytes,
                                               .limit = std::chrono::seconds(2)}));
  if (!IsFeatures(document)) {
    return std::string();
  }
  if (!path.empty() && identity.size() <= kMaxIdentityBytes) {
    Keep(keep_dir, path, identity + document);
  }
  return document;
}

}  // namespace gantry::runc

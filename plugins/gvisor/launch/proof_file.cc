// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/proof_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

#include <gantry/fingerprint.h>
#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::gvisor {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
/// Each byte may take six.
constexpr size_t kMaxFailure = 2048;

Json ToJsonOf(const FileIdentity& file) {
  return {file.device, file.inode, file.size, file.changed_ns};
}

FileIdentity IdentityIn(const Json& json) {
  return {json.at(0).get<uint64_t>(), json.at(1).get<uint64_t>(), json.at(2).get<int64_t>(),
          json.at(3).get<int64_t>()};
}

/// The folder may be there already: the other shim's, or made by an operator.
Status MakeRoot(const std::string& root) {
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(root).parent_path(), failed);
  constexpr mode_t kMode = 0700;
  if (mkdir(root.c_str(), kMode) != 0 && errno != EEXIST) {
    return FailErrno(errno, "make '{}'", root);
  }
  return {};
}

}  // namespace

std::string Proof::ToJson() const {
  const Json json = {{"version", kVersion},
                     {"runsc", ToJsonOf(runsc)},
                     {"sentry", ToJsonOf(sentry)},
                     {"platform", platform},
                     {"failure", failure.substr(0, kMaxFailure)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Proof> Proof::FromJson(const std::string& text) {
  const Json json = ReadJson(text);
  Proof proof;
  // The one seam to a library that throws: a file that was damaged.
  try {
    if (json.at("version") != kVersion) {
      return Fail(Code::kDataLoss, "read a proof: of another version");
    }
    proof.runsc = IdentityIn(json.at("runsc"));
    proof.sentry = IdentityIn(json.at("sentry"));
    json.at("platform").get_to(proof.platform);
    json.at("failure").get_to(proof.failure);
  } catch (const Json::exception& e) {
    return Fail(Code::kDataLoss, "read a proof: {}", e.what());
  }
  return proof;
}

std::string ProofPath(const std::string& root, const std::string& runsc,
                      const std::string& platform) {
  return Format("{}/gantry-proof-{:016x}.json", root, Fingerprint(platform, Fingerprint(runsc)));
}

std::optional<Proof> ReadProof(const std::string& root, const Runsc& runsc,
                               const std::string& platform) {
  const auto text = ReadFile(ProofPath(root, runsc.runsc.path, platform), kMaxProofBytes);
  if (!text) {
    return std::nullopt;
  }
  auto proof = Proof::FromJson(*text);
  if (!proof || proof->runsc != runsc.identity || proof->sentry != runsc.sentry_identity ||
      proof->platform != platform) {
    return std::nullopt;
  }
  return *std::move(proof);
}

Status WriteProof(const std::string& root, const Runsc& runsc, const std::string& platform,
                  const std::string& failure) {
  const Proof proof{runsc.identity, runsc.sentry_identity, platform, failure};
  GANTRY_CHECK_OK(MakeRoot(root));
  constexpr mode_t kMode = 0600;
  return ReplaceFile(ProofPath(root, runsc.runsc.path, platform), proof.ToJson(), kMode);
}

}  // namespace gantry::gvisor

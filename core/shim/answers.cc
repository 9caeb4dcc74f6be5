// SPDX-License-Identifier: Apache-2.0
//
// The bytes that containerd reads from the shim's stdout, in the form that the containerd which
// called understands; what the forms are is said in answers.h.
#include "core/shim/answers.h"

#include <gantry/protowire.h>

namespace gantry::shim {
namespace {

constexpr int64_t kNanos = 1'000'000'000;
constexpr std::string_view kFeaturesType =
    "types.containerd.io/opencontainers/runtime-spec/1/features/Features";
/// Where nothing else is known. containerd refuses mounts with id mappings, and the kubelet
/// pods with a user namespace and recursive read-only mounts, that are not promised.
constexpr std::string_view kNoFeatures =
    R"({"ociVersionMin":"1.0.0","ociVersionMax":"1.2.0","linux":{)"
    R"("mountExtensions":{"idmap":{"enabled":false}}}})";
constexpr std::string_view kWhyNot = "io.gantry.features.unknown";

#ifndef GANTRY_VERSION
#define GANTRY_VERSION "unknown"
#endif

}  // namespace

AnswerForm ChooseForm(bool has_max_version, uint32_t bootstrap_version, int containerd_major) {
  if (bootstrap_version >= 3 || containerd_major >= 2) {
    return AnswerForm::kVersion3;
  }
  return has_max_version ? AnswerForm::kVersion2 : AnswerForm::kPlain;
}

std::string StartAnswer(AnswerForm form, std::string_view address) {
  if (form == AnswerForm::kPlain) {
    return std::string(address);
  }
  const std::string_view version = form == AnswerForm::kVersion3 ? "3" : "2";
  // The address is a path that the keeper made: nothing in it needs escaping but what
  // a run directory may have been called.
  std::string json = R"({"version":)";
  json.append(version).append(R"(,"address":")");
  for (const char c : address) {
    if (c == '"' || c == '\\') {
      json.push_back('\\');
    }
    json.push_back(c);
  }
  return json.append(R"(","protocol":"ttrpc"})");
}

std::string DeleteAnswer(const link::Deleted& deleted) {
  ProtoWriter time;
  time.Int(1, deleted.exited_at_ns / kNanos);
  time.Int(2, deleted.exited_at_ns % kNanos);
  ProtoWriter answer;
  answer.Varint(1, deleted.pid);
  answer.Varint(2, deleted.status);
  answer.Bytes(3, time.str());
  return answer.Take();
}

std::string InfoAnswer(std::string_view handler, const HandlerFeatures& features) {
  ProtoWriter version;
  version.Text(1, GANTRY_VERSION);
  ProtoWriter any;
  any.Text(1, kFeaturesType);
  any.Text(2, features.json.empty() ? kNoFeatures : features.json);
  ProtoWriter info;
  std::string name = "io.containerd.gantry";
  if (!handler.empty()) {
    name.append("-").append(handler);
  }
  info.Bytes(1, name.append(".v1"));
  info.Bytes(2, version.str());
  info.Bytes(4, any.str());
  if (!features.why_not.empty()) {
    ProtoWriter annotation;
    annotation.Text(1, kWhyNot);
    annotation.Text(2, features.why_not);
    info.Bytes(5, annotation.str());
  }
  return info.Take();
}

std::string VersionAnswer(std::string_view program) {
  return std::string(program).append(":\n  Version:  " GANTRY_VERSION "\n");
}

}  // namespace gantry::shim

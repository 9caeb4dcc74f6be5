// SPDX-License-Identifier: Apache-2.0
#include "core/setup/runtimes.h"

#include <algorithm>
#include <optional>

#include <gantry/format.h>

namespace gantry::setup {
namespace {

/// Annotations of pods that a backend understands: CRI drops those that are not listed.
/// The handlers are called as their backends, as docs/kubernetes.md has them.
struct Annotations {
  std::string_view handler;
  std::string_view pod;
  std::string_view container;
};

constexpr Annotations kAnnotations[] = {
    {"runc", R"(["io.gantry.*"])", ""},
    {"gvisor",
     R"(["dev.gvisor.spec.mount.*", "dev.gvisor.spec.empty-dir.*", "dev.gvisor.flag.debug"])", ""},
    {"wasm", R"(["io.gantry.wasm/*", "run.oci.handler", "module.wasm.image/*"])",
     R"(["io.gantry.wasm/*", "run.oci.handler", "module.wasm.image/*"])"},
};

/// What a pod takes beside its containers; docs/kubernetes.md says of what it is made.
struct Overhead {
  std::string_view handler;
  std::string_view yaml;
};

constexpr Overhead kOverheads[] = {
    {"gvisor", "overhead:\n  podFixed:\n    memory: 40Mi\n"},
    {"vmm", "overhead:\n  podFixed:\n    cpu: 250m\n    memory: 384Mi\n"},
};

/// RFC 1123's label, which RuntimeClass asks of `handler`.
bool IsLabel(std::string_view word) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !word.empty() && word.size() <= 63 && plain(word.front()) && plain(word.back()) &&
         std::ranges::all_of(word, [&](char c) { return plain(c) || c == '-'; });
}

/// What is behind the last `mark`, which `word` loses; nothing where there is no `mark`.
std::optional<std::string> CutBehind(std::string& word, char mark) {
  const size_t at = word.rfind(mark);
  if (at == std::string::npos) {
    return std::nullopt;
  }
  std::string tail = word.substr(at + 1);
  word.resize(at);
  return tail;
}

Result<Runtime> ParseRuntime(std::string word, Sandboxer sandboxer) {
  const std::string whole = word;
  Runtime runtime;
  runtime.sandboxer = sandboxer;
  if (const auto said = CutBehind(word, ':')) {
    GANTRY_TRY(runtime.sandboxer, ParseSandboxer(*said));
  }
  const auto name = CutBehind(word, '=');
  runtime.handler = word;
  runtime.name = name ? *name : word == "runc" ? "gantry" : word;
  for (const std::string& part : {runtime.handler, runtime.name}) {
    if (!IsLabel(part)) {
      return Fail(
          Code::kInvalidArgument,
          "handler '{}': it is HANDLER[=NAME][:SANDBOXER], of small letters, digits and '-'",
          whole);
    }
  }
  return runtime;
}

std::string Head(std::string_view name, int config_version) {
  return Format("[plugins.\"{}\".containerd.runtimes.{}]\n", CriPlugin(config_version), name);
}

}  // namespace

Result<std::vector<Runtime>> ParseRuntimes(std::string_view words, Sandboxer sandboxer) {
  std::vector<Runtime> runtimes;
  for (size_t at = 0; at <= words.size();) {
    const size_t end = std::min(words.find(',', at), words.size());
    GANTRY_TRY(Runtime runtime, ParseRuntime(std::string(words.substr(at, end - at)), sandboxer));
    if (std::ranges::contains(runtimes, runtime.name, &Runtime::name)) {
      return Fail(Code::kInvalidArgument, "handlers '{}': two runtimes are called '{}'", words,
                  runtime.name);
    }
    runtimes.push_back(std::move(runtime));
    at = end + 1;
  }
  return runtimes;
}

bool Wanted::HasController() const {
  return std::ranges::contains(runtimes, Sandboxer::kController, &Runtime::sandboxer);
}

std::string TypeOf(const Wanted& wanted, const std::string& handler) {
  return handler == wanted.default_handler ? "io.containerd.gantry.v1"
                                           : Format("io.containerd.gantry-{}.v1", handler);
}

std::string ShimOf(const Wanted& wanted, const std::string& handler) {
  const std::string name = handler == wanted.default_handler
                               ? "containerd-shim-gantry-v1"
                               : Format("containerd-shim-gantry-{}-v1", handler);
  return wanted.shim.substr(0, wanted.shim.rfind('/') + 1) + name;
}

std::string_view CriPlugin(int config_version) {
  return config_version < 3 ? "io.containerd.grpc.v1.cri" : "io.containerd.cri.v1.runtime";
}

std::string TablesOf(const Wanted& wanted, const Release& release, int config_version) {
  std::string text;
  if (wanted.HasController()) {
    text += Format("[proxy_plugins.gantry]\n  type = \"sandbox\"\n  address = \"{}\"\n",
                   wanted.grpc_address);
  }
  for (const Runtime& runtime : wanted.runtimes) {
    text += Head(runtime.name, config_version);
    text += Format("  runtime_type = \"{}\"\n", TypeOf(wanted, runtime.handler));
    if (!wanted.shim.empty()) {
      text += Format("  runtime_path = \"{}\"\n", ShimOf(wanted, runtime.handler));
    }
    if (runtime.sandboxer != Sandboxer::kPodsandbox) {
      text += Format("  {} = \"{}\"\n", release.major < 2 ? "sandbox_mode" : "sandboxer",
                     runtime.sandboxer == Sandboxer::kShim ? "shim" : "gantry");
    }
    const auto* const known =
        std::ranges::find(kAnnotations, runtime.handler, &Annotations::handler);
    if (known != std::ranges::end(kAnnotations)) {
      text += Format("  pod_annotations = {}\n", known->pod);
      if (!known->container.empty()) {
        text += Format("  container_annotations = {}\n", known->container);
      }
    }
  }
  return text;
}

std::string RuntimeClassesOf(const Wanted& wanted) {
  std::string text;
  for (const Runtime& runtime : wanted.runtimes) {
    text += text.empty() ? "" : "---\n";
    text += Format(
        "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata:\n  name: {}\nhandler: {}\n",
        runtime.name, runtime.name);
    const auto* const cost = std::ranges::find(kOverheads, runtime.handler, &Overhead::handler);
    if (cost != std::ranges::end(kOverheads)) {
      text += cost->yaml;
    }
  }
  return text;
}

}  // namespace gantry::setup

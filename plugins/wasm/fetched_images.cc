// SPDX-License-Identifier: Apache-2.0
//
// Modules that are layers of images come from containerd, by a program that lives for one of them,
// and it says which of them images still have.
#include <chrono>
#include <set>
#include <string>
#include <utility>

#include <gantry/toolkit/descriptors/helper.h>

#include "plugins/wasm/fetch/digests.h"
#include "plugins/wasm/fetch/image.h"
#include "plugins/wasm/launch.h"

namespace gantry::wasm {
namespace {

Result<std::optional<ModuleBytes>> Find(SandboxContext& context, const ImageModule& wanted) {
  GANTRY_TRY(const UniqueFd program, OpenHelper("gantry-wasm-fetch"));
  fetch::ImageQuestion question;
  question.address = wanted.address;
  question.ns = wanted.ns;
  question.container = wanted.container;
  question.program = wanted.program;
  question.max_bytes = wanted.max_bytes;
  GANTRY_TRY(fetch::FoundImage found, fetch::FindImageModule(context, program, question));
  return std::move(found.module);
}

/// Of all calls for one list.
constexpr std::chrono::seconds kListing{20};

Result<std::set<Sha256Digest>> List(SandboxContext& context, const std::string& address) {
  GANTRY_TRY(const UniqueFd program, OpenHelper("gantry-wasm-fetch"));
  return fetch::FindDigests(context, program, address, kListing);
}

}  // namespace

FindInImage MakeFindInImage() { return Find; }

FindDigests MakeFindDigests() { return List; }

}  // namespace gantry::wasm

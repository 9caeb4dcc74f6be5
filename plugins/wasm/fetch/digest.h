// SPDX-License-Identifier: Apache-2.0
//
// The digests by which a content store names its blobs.
// Source: opencontainers/image-spec 1.1, descriptor.md, "Digests". Thread: any. Blocks: never.
#pragma once

#include <string>
#include <string_view>

#include <gantry/error.h>

#include "plugins/wasm/module/sha256.h"

namespace gantry::wasm::fetch {

/// "sha256:" and 64 lower-case hexadecimal digits. Errors: kInvalidArgument: another form;
/// kFailedPrecondition: another algorithm.
Result<Sha256Digest> ParseDigest(std::string_view text);
std::string DigestText(const Sha256Digest& digest);

}  // namespace gantry::wasm::fetch

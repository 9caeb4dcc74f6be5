// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/faulty/contexts.h"

namespace gantry::faulty {
namespace {

/// For good.
std::vector<UniqueFd>& Held() {
  static std::vector<UniqueFd> held;
  return held;
}

}  // namespace

Result<Stdio> FaultyProcessContext::TakeStdio() {
  GANTRY_TRY(Stdio stdio, core_.TakeStdio());
  if (fault_ == Fault::kHoldsStreams && stdio.out.fd) {
    GANTRY_TRY(UniqueFd copy, stdio.out.fd.Duplicate());
    Held().push_back(std::move(copy));
  }
  return stdio;
}

}  // namespace gantry::faulty

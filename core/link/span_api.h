// SPDX-License-Identifier: Apache-2.0
//
// How gantry-grpc takes spans from the engine, at the socket of the operator's API:
// proto/gantry/spans.proto.
#pragma once

namespace gantry::span_api {

inline constexpr char kService[] = "gantry.v1.Spans";
inline constexpr char kTake[] = "Take";

}  // namespace gantry::span_api

// SPDX-License-Identifier: Apache-2.0
//
// Which instances share a socket: the annotations of config.json say.
#pragma once

#include <string>
#include <string_view>

namespace gantry::shim {

/// The value of io.containerd.runc.v2.group, else of io.kubernetes.cri.sandbox-id,
/// among the annotations of a config.json; empty where there is none. Of a container of CRI
/// only the latter. Text that is no JSON has none: refusing it is the engine's business.
std::string GroupOf(std::string_view config_json);

/// The same of the file in `bundle`; none where it is absent (a sandbox) or larger than 50 MB.
std::string GroupOfBundle(const std::string& bundle);

}  // namespace gantry::shim

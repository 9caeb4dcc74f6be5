// SPDX-License-Identifier: Apache-2.0
//
// How a backend is shipped: a shared object that exports one symbol, the
// descriptor. The core checks the descriptor before it calls anything.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <gantry/backend.h>

namespace gantry {

/// "gantry\0\1" as a number: the file is a gantry plugin at all.
inline constexpr uint64_t kPluginMagic = 0x67616e7472790001;
/// Raised with every change of the interfaces in this folder.
inline constexpr uint32_t kInterfaceVersion = 2;

#define GANTRY_STRINGIFY_INNER(x) #x
#define GANTRY_STRINGIFY(x) GANTRY_STRINGIFY_INNER(x)
/// What must be equal in core and plugin for C++ types to be passed between
/// them: the compiler's ABI, the library's ABI.
#define GANTRY_BUILD_FINGERPRINT                                                       \
  "gxx-abi-" GANTRY_STRINGIFY(__GXX_ABI_VERSION) "/libstdcxx-cxx11-" GANTRY_STRINGIFY( \
      _GLIBCXX_USE_CXX11_ABI) "/cplusplus-" GANTRY_STRINGIFY(__cplusplus)

/// Exported as `gantry_plugin`. Plain data: it is read before anything of the
/// plugin is trusted.
struct PluginDescriptor {
  uint64_t magic;
  uint32_t interface_version;
  /// `sizeof(PluginDescriptor)` at the plugin's build.
  uint32_t size;
  const char* fingerprint;
  const char* name;
  const char* version;
  /// Makes the backend. `options_json`: the backend's own options of the
  /// configuration, a JSON object. Called once, on the loading thread.
  Result<std::unique_ptr<SandboxBackend>> (*create)(const std::string& options_json);
};

}  // namespace gantry

/// In one source file of a plugin: `GANTRY_PLUGIN("runc", "0.1.0", Create)`.
#define GANTRY_PLUGIN(plugin_name, plugin_version, factory)                             \
  extern "C" __attribute__((visibility("default")))                                     \
  const ::gantry::PluginDescriptor gantry_plugin;                                       \
  const ::gantry::PluginDescriptor gantry_plugin = {::gantry::kPluginMagic,             \
                                                    ::gantry::kInterfaceVersion,        \
                                                    sizeof(::gantry::PluginDescriptor), \
                                                    GANTRY_BUILD_FINGERPRINT,           \
                                                    plugin_name,                        \
                                                    plugin_version,                     \
                                                    factory}

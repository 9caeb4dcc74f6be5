// SPDX-License-Identifier: Apache-2.0
//
// The only file that includes Boost.DLL. Its exceptions end here.
#include "core/backend/plugin_host.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/dll/shared_library.hpp>

#include <gantry/backend.h>
#include <gantry/format.h>
#include <gantry/plugin.h>

#include "core/backend/guard.h"
#include "core/backend/plugin_file.h"

namespace gantry::backend {

namespace {

constexpr const char* kSymbol = "gantry_plugin";

/// In a list that is never destroyed: with its last `shared_library` gone a
/// plugin would be unloaded.
void KeepLoaded(boost::dll::shared_library library) {
  static auto* const kept = new std::vector<boost::dll::shared_library>();
  kept->push_back(std::move(library));
}

/// An address in the object, of a part that is mapped from its file. Source: dlinfo(3).
const void* AddressIn(const boost::dll::shared_library& library) {
  link_map* map = nullptr;
  return dlinfo(library.native(), RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 ? map->l_ld
                                                                                  : nullptr;
}

Result<const PluginDescriptor*> OpenPlugin(const UniqueFd& file, const std::string& path) {
  // dlopen(3): RTLD_NOW, so that a missing symbol is found here and not in the
  // middle of a call, and RTLD_LOCAL, so that plugins do not see each other.
  constexpr auto kMode = boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local;
  boost::dll::shared_library library;
  try {
    // The overload with an error code loses dlerror(3)'s text.
    library.load(path, kMode);
  } catch (const std::exception& e) {
    return Fail(Code::kFailedPrecondition,
                "load plugin '{}': it does not link: {}: install what it needs (see ldd)", path,
                e.what());
  }
  if (Status same = CheckLoaded(file, AddressIn(library), path); !same) {
    KeepLoaded(std::move(library));
    return std::unexpected(std::move(same).error());
  }
  if (!library.has(kSymbol)) {
    KeepLoaded(std::move(library));
    return Fail(Code::kFailedPrecondition,
                "load plugin '{}': it exports no '{}': it is no gantry plugin, or lacks "
                "GANTRY_PLUGIN in one of its sources",
                path, kSymbol);
  }
  const PluginDescriptor* descriptor = &library.get<const PluginDescriptor>(kSymbol);
  KeepLoaded(std::move(library));
  return descriptor;
}

std::string_view TextOf(const char* text) { return text != nullptr ? text : ""; }

Status CheckDescriptor(const PluginDescriptor& plugin, const std::string& path,
                       const std::string& name) {
  if (plugin.magic != kPluginMagic) {
    return Fail(Code::kFailedPrecondition,
                "load plugin '{}': its '{}' is not a plugin descriptor: it is no gantry plugin",
                path, kSymbol);
  }
  if (plugin.interface_version != kInterfaceVersion) {
    return Fail(Code::kFailedPrecondition,
                "load plugin '{}': made for interface version {}, this gantry has {}: {}", path,
                plugin.interface_version, kInterfaceVersion,
                plugin.interface_version < kInterfaceVersion
                    ? "build the plugin against this gantry's headers"
                    : "install a newer gantry or an older plugin");
  }
  if (plugin.size != sizeof(PluginDescriptor)) {
    return Fail(Code::kFailedPrecondition,
                "load plugin '{}': its descriptor has {} bytes, this gantry's {}: build the plugin "
                "against this gantry's headers",
                path, plugin.size, sizeof(PluginDescriptor));
  }
  if (TextOf(plugin.fingerprint) != GANTRY_BUILD_FINGERPRINT) {
    return Fail(Code::kFailedPrecondition,
                "load plugin '{}': built as '{}', this gantry as '{}': build both with the same "
                "compiler, standard library and language standard",
                path, TextOf(plugin.fingerprint), GANTRY_BUILD_FINGERPRINT);
  }
  if (TextOf(plugin.name) != name) {
    return Fail(Code::kFailedPrecondition,
                "load plugin '{}': it is the backend '{}', not '{}': correct the configuration's "
                "backends",
                path, TextOf(plugin.name), name);
  }
  if (plugin.create == nullptr) {
    return Fail(Code::kFailedPrecondition,
                "load plugin '{}': its descriptor has no factory: report it to its maker", path);
  }
  return {};
}

Result<const PluginDescriptor*> OpenChecked(const std::string& path, const std::string& name) {
  GANTRY_TRY(const UniqueFd file, OpenPluginFile(path));
  GANTRY_TRY(const PluginDescriptor* plugin,
             GuardedCall(name, [&] { return OpenPlugin(file, path); }));
  GANTRY_CHECK_OK(CheckDescriptor(*plugin, path, name));
  return plugin;
}

}  // namespace

Result<LoadedPlugin> PluginHost::Load(const std::string& path, const std::string& name,
                                      const std::string& options_json) {
  GANTRY_TRY(const PluginDescriptor* plugin, OpenChecked(path, name));
  auto backend = GuardedCall(name, [&]() -> Result<std::unique_ptr<SandboxBackend>> {
    auto made = plugin->create(options_json);
    if (made && *made == nullptr) {
      return Fail(Code::kInternal, "the factory of '{}' gave nothing: report it to its maker",
                  path);
    }
    return made;
  });
  if (!backend) {
    return std::unexpected(std::move(backend).error().Within("make backend '" + name + "'"));
  }
  return LoadedPlugin{name, std::string(TextOf(plugin->version)), path, std::move(*backend)};
}

Result<std::string> PluginHost::Inspect(const std::string& path, const std::string& name) {
  GANTRY_TRY(const PluginDescriptor* plugin, OpenChecked(path, name));
  return Format("{} {}", TextOf(plugin->name), TextOf(plugin->version));
}

int PluginHost::RunProbe(const std::string& path, const std::string& name,
                         const std::string* options_json) {
  Result<std::string> inspected;
  if (options_json == nullptr) {
    inspected = Inspect(path, name);
  } else if (auto loaded = Load(path, name, *options_json); loaded) {
    inspected = Format("{} {}", loaded->name, loaded->version);
  } else {
    inspected = std::unexpected(std::move(loaded).error());
  }
  if (inspected) {
    std::printf("%s\n", inspected->c_str());
    return 0;
  }
  std::printf("%s\n", inspected.error().message.c_str());
  // The codes are 1 to 16.
  return static_cast<int>(inspected.error().code);
}

}  // namespace gantry::backend

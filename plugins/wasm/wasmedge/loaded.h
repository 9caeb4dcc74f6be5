// SPDX-License-Identifier: Apache-2.0
//
// A module in WasmEdge, before anything of it has run: is it valid, and what does it want and have?
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <wasmedge/wasmedge.h>

#include <gantry/error.h>

namespace gantry::wasm {

/// What an entry gives back.
enum class Returns { kNothing, kCode };

/// A function that a module has or wants; null where it is something else.
struct NamedFunction {
  /// Of what it wants: whose it is to be.
  std::string module;
  std::string name;
  const WasmEdge_FunctionTypeContext* type = nullptr;
};

/// Owner: what it holds lives as long as the process, which runs one module.
class LoadedModule {
 public:
  /// `config`: borrowed. Errors: kInvalidArgument: it is not valid, in WasmEdge's words.
  static Result<LoadedModule> Load(const WasmEdge_ConfigureContext* config,
                                   const std::string& bytes);

  const WasmEdge_ASTModuleContext* get() const { return module_; }

  /// What the exported function `entry` gives back. Errors: kFailedPrecondition: there is no such
  /// function that can be run; it and those that there are are named.
  Result<Returns> FindEntry(const std::string& entry) const;

  /// It has a function of that name that can be run.
  bool CanRun(std::string_view name) const;

  /// Each import is in `host`, which is WASI's, and is of the same type. Errors:
  /// kFailedPrecondition, naming the import.
  Status CheckImports(const WasmEdge_ModuleInstanceContext* host) const;

  /// The most pages that a memory it exports has from its beginning.
  uint64_t FirstPages() const;

 private:
  explicit LoadedModule(WasmEdge_ASTModuleContext* module) : module_(module) {}

  std::vector<NamedFunction> Exports() const;

  WasmEdge_ASTModuleContext* module_;
};

WasmEdge_String StringOf(std::string_view text);

}  // namespace gantry::wasm

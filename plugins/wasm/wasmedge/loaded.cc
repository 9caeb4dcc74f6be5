// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/wasmedge/loaded.h"

#include <algorithm>
#include <cstdint>

#include <gantry/format.h>
#include <gantry/toolkit/oci/json.h>

namespace gantry::wasm {
namespace {

// Of the functions that a module has in place of the one that was asked for.
constexpr size_t kMostNamed = 10;

std::string TextOf(const WasmEdge_String& text) { return {text.Buf, text.Length}; }

// Names of the guest in a sentence of ours: nothing in them is a line or a terminal's word.
std::string Quoted(std::string_view name) {
  constexpr size_t kMostShown = 200;
  std::string shown = oci::Quote(name.substr(0, kMostShown));
  shown.front() = '\'';
  shown.back() = '\'';
  return shown;
}

std::optional<Returns> Runnable(const WasmEdge_FunctionTypeContext* type) {
  if (type == nullptr || ::WasmEdge_FunctionTypeGetParametersLength(type) != 0) {
    return std::nullopt;
  }
  WasmEdge_ValType result{};
  switch (::WasmEdge_FunctionTypeGetReturns(type, &result, 1)) {
    case 0:
      return Returns::kNothing;
    case 1:
      return ::WasmEdge_ValTypeIsI32(result) ? std::optional(Returns::kCode) : std::nullopt;
    default:
      return std::nullopt;
  }
}

using ListTypes = uint32_t (*)(const WasmEdge_FunctionTypeContext*, WasmEdge_ValType*, uint32_t);

bool AreSame(const WasmEdge_FunctionTypeContext* one, const WasmEdge_FunctionTypeContext* other,
             uint32_t count, ListTypes list) {
  std::vector<WasmEdge_ValType> of_one(count);
  std::vector<WasmEdge_ValType> of_other(count);
  return list(one, of_one.data(), count) == count && list(other, of_other.data(), count) == count &&
         std::ranges::equal(of_one, of_other, ::WasmEdge_ValTypeIsEqual);
}

bool IsSameType(const WasmEdge_FunctionTypeContext* one,
                const WasmEdge_FunctionTypeContext* other) {
  return AreSame(one, other, ::WasmEdge_FunctionTypeGetParametersLength(one),
                 ::WasmEdge_FunctionTypeGetParameters) &&
         AreSame(one, other, ::WasmEdge_FunctionTypeGetReturnsLength(one),
                 ::WasmEdge_FunctionTypeGetReturns);
}

std::vector<NamedFunction> ImportsOf(const WasmEdge_ASTModuleContext* module) {
  std::vector<const WasmEdge_ImportTypeContext*> imports(
      ::WasmEdge_ASTModuleListImportsLength(module));
  ::WasmEdge_ASTModuleListImports(module, imports.data(), static_cast<uint32_t>(imports.size()));
  std::vector<NamedFunction> out;
  out.reserve(imports.size());
  for (const WasmEdge_ImportTypeContext* one : imports) {
    out.push_back({.module = TextOf(::WasmEdge_ImportTypeGetModuleName(one)),
                   .name = TextOf(::WasmEdge_ImportTypeGetExternalName(one)),
                   .type = ::WasmEdge_ImportTypeGetFunctionType(module, one)});
  }
  return out;
}

std::vector<const WasmEdge_ExportTypeContext*> ExportsOf(const WasmEdge_ASTModuleContext* module) {
  std::vector<const WasmEdge_ExportTypeContext*> out(::WasmEdge_ASTModuleListExportsLength(module));
  ::WasmEdge_ASTModuleListExports(module, out.data(), static_cast<uint32_t>(out.size()));
  return out;
}

}  // namespace

WasmEdge_String StringOf(std::string_view text) {
  return ::WasmEdge_StringWrap(text.data(), static_cast<uint32_t>(text.size()));
}

Result<LoadedModule> LoadedModule::Load(const WasmEdge_ConfigureContext* config,
                                        const std::string& bytes) {
  WasmEdge_ASTModuleContext* module = nullptr;
  WasmEdge_Result result = ::WasmEdge_LoaderParseFromBytes(
      ::WasmEdge_LoaderCreate(config), &module,
      ::WasmEdge_BytesWrap(reinterpret_cast<const uint8_t*>(bytes.data()),
                           static_cast<uint32_t>(bytes.size())));
  if (::WasmEdge_ResultOK(result)) {
    result = ::WasmEdge_ValidatorValidate(::WasmEdge_ValidatorCreate(config), module);
  }
  if (!::WasmEdge_ResultOK(result)) {
    return Fail(Code::kInvalidArgument, "the module is not valid: {}",
                ::WasmEdge_ResultGetMessage(result));
  }
  return LoadedModule(module);
}

std::vector<NamedFunction> LoadedModule::Exports() const {
  std::vector<NamedFunction> out;
  for (const WasmEdge_ExportTypeContext* one : ExportsOf(module_)) {
    out.push_back({.module = {},
                   .name = TextOf(::WasmEdge_ExportTypeGetExternalName(one)),
                   .type = ::WasmEdge_ExportTypeGetFunctionType(module_, one)});
  }
  return out;
}

bool LoadedModule::CanRun(std::string_view name) const {
  return std::ranges::any_of(Exports(), [&](const NamedFunction& one) {
    return one.name == name && Runnable(one.type).has_value();
  });
}

Result<Returns> LoadedModule::FindEntry(const std::string& entry) const {
  bool is_there = false;
  std::string named;
  size_t others = 0;
  for (const NamedFunction& one : Exports()) {
    const std::optional<Returns> returns = Runnable(one.type);
    if (one.name == entry && returns) {
      return *returns;
    }
    is_there = is_there || one.name == entry;
    if (returns && ++others <= kMostNamed) {
      named += Format("{}{}", others == 1 ? "" : ", ", Quoted(one.name));
    }
  }
  const std::string wrong =
      is_there ? Format(
                     "the module's {} is no function without parameters that returns nothing or "
                     "an i32",
                     Quoted(entry))
               : Format("the module exports no function {}", Quoted(entry));
  if (others == 0) {
    return Fail(Code::kFailedPrecondition, "{}, and none that could be run", wrong);
  }
  return Fail(Code::kFailedPrecondition, "{}; what can be run is {}{}", wrong, named,
              others > kMostNamed ? Format(" and {} more", others - kMostNamed) : "");
}

Status LoadedModule::CheckImports(const WasmEdge_ModuleInstanceContext* host) const {
  const std::string host_name = TextOf(::WasmEdge_ModuleInstanceGetModuleName(host));
  for (const NamedFunction& one : ImportsOf(module_)) {
    const WasmEdge_FunctionInstanceContext* found =
        one.module == host_name && one.type != nullptr
            ? ::WasmEdge_ModuleInstanceFindFunction(host, StringOf(one.name))
            : nullptr;
    if (found == nullptr) {
      return Fail(Code::kFailedPrecondition, "the module imports {} {}: nothing here provides it",
                  Quoted(one.module), Quoted(one.name));
    }
    if (!IsSameType(one.type, ::WasmEdge_FunctionInstanceGetFunctionType(found))) {
      return Fail(Code::kFailedPrecondition,
                  "the module imports {} {}: what is provided here has other parameters or results",
                  Quoted(one.module), Quoted(one.name));
    }
  }
  return {};
}

uint64_t LoadedModule::FirstPages() const {
  uint64_t most = 0;
  for (const WasmEdge_ExportTypeContext* one : ExportsOf(module_)) {
    if (const auto* memory = ::WasmEdge_ExportTypeGetMemoryType(module_, one)) {
      most = std::max<uint64_t>(most, ::WasmEdge_MemoryTypeGetLimit(memory).Min);
    }
  }
  return most;
}

}  // namespace gantry::wasm

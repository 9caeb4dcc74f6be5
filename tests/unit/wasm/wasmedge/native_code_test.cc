// SPDX-License-Identifier: Apache-2.0
//
// Machine code that a module carries is never run: WasmEdge would.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <wasmedge/wasmedge.h>

#include "plugins/wasm/engine/include/gantry_wasm_engine.h"
#include "tests/unit/wasm/engine/guest.h"

namespace gantry::wasm {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

WasmEdge_Bytes BytesOf(const std::string& text) {
  return WasmEdge_BytesWrap(reinterpret_cast<const uint8_t*>(text.data()),
                            static_cast<uint32_t>(text.size()));
}

class NativeCode : public testing::Test {
 protected:
  NativeCode() {
    char made[] = "/tmp/gantry-edge-XXXXXX";
    folder_ = mkdtemp(made);
  }

  ~NativeCode() override { std::filesystem::remove_all(folder_); }

  /// `module` with a section of machine code, by WasmEdge's own compiler.
  std::string Compiled(const std::string& module) const {
    WasmEdge_ConfigureContext* config = WasmEdge_ConfigureCreate();
    WasmEdge_ConfigureCompilerSetOutputFormat(config, WasmEdge_CompilerOutputFormat_Wasm);
    WasmEdge_CompilerContext* compiler = WasmEdge_CompilerCreate(config);
    const std::string path = folder_ + "/compiled";
    const WasmEdge_Result result =
        WasmEdge_CompilerCompileFromBytes(compiler, BytesOf(module), path.c_str());
    EXPECT_TRUE(WasmEdge_ResultOK(result)) << WasmEdge_ResultGetMessage(result);
    WasmEdge_CompilerDelete(compiler);
    WasmEdge_ConfigureDelete(config);
    return ReadAll(path);
  }

  std::string folder_;
};

/// What WasmEdge does with bytes that are nobody's to have looked at: the exit code.
uint32_t ExitCodeOfPlainEngine(const std::string& module) {
  const pid_t pid = fork();
  if (pid == 0) {
    WasmEdge_ConfigureContext* config = WasmEdge_ConfigureCreate();
    WasmEdge_ConfigureAddHostRegistration(config, WasmEdge_HostRegistration_Wasi);
    WasmEdge_VMContext* vm = WasmEdge_VMCreate(config, nullptr);
    WasmEdge_ModuleInstanceContext* wasi =
        WasmEdge_VMGetImportModuleContext(vm, WasmEdge_HostRegistration_Wasi);
    WasmEdge_ModuleInstanceInitWASI(wasi, nullptr, 0, nullptr, 0, nullptr, 0);
    WasmEdge_VMRunWasmFromBytes(vm, BytesOf(module), WasmEdge_StringWrap("_start", 6), nullptr, 0,
                                nullptr, 0);
    _exit(static_cast<int>(WasmEdge_ModuleInstanceWASIGetExitCode(wasi)));
  }
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return static_cast<uint32_t>(WEXITSTATUS(status));
}

TEST_F(NativeCode, OfASectionIsNotRun) {
  const std::string module = ReadAll(std::string(GANTRY_TEST_GUESTS) + "/exit.wasm");
  // The same module, which exits with 7.
  std::string other = module;
  const size_t at = other.find("\x41\xc8\x03");
  ASSERT_NE(at, std::string::npos);
  other.replace(at, 3, std::string("\x41\x87\0", 3));
  const std::string compiled = Compiled(other);
  ASSERT_GT(compiled.size(), other.size());
  ASSERT_EQ(compiled.substr(0, other.size()), other) << "the section is behind the module";
  const std::string both = module + compiled.substr(other.size());
  ASSERT_EQ(ExitCodeOfPlainEngine(both), 7U) << "what this test is about";
  std::ofstream(folder_ + "/both.wasm", std::ios::binary) << both;

  const std::string name =
      std::filesystem::relative(folder_ + "/both", GANTRY_TEST_GUESTS).string();
  const GuestEnd end = RunGuest({.name = name, .args = {"both"}});
  EXPECT_EQ(end.end, GANTRY_WASM_EXITED) << end.why;
  EXPECT_EQ(end.code, 200U);
}

TEST_F(NativeCode, OfALibraryIsNotLoaded) {
  std::filesystem::copy_file("/proc/self/exe", folder_ + "/library.wasm");
  const std::string name =
      std::filesystem::relative(folder_ + "/library", GANTRY_TEST_GUESTS).string();
  const GuestEnd end = RunGuest({.name = name, .args = {"library"}});
  EXPECT_EQ(end.prepared, GANTRY_WASM_INVALID);
  EXPECT_NE(end.why.find("an ELF program"), std::string::npos) << end.why;
}

}  // namespace
}  // namespace gantry::wasm

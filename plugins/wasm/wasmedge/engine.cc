// SPDX-License-Identifier: Apache-2.0
//
// The engine of gantry_wasm_engine.h, made of WasmEdge: core modules with WASI preview 1 and the
// sockets that WasmEdge adds to it, interpreted. The artifact is the module itself.
//
// A file of an image is never WasmEdge's to open, since it would load one that is an ELF library;
// nor does it see custom sections (sanitise.h). It is given bytes, and told to interpret them.
// No `Delete` is called: the process ends with its guest.
#include <fcntl.h>
#include <gantry_wasm_engine.h>
#include <nss.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <wasmedge/wasmedge.h>

#include <gantry/format.h>
#include <gantry/unique_fd.h>

#include "plugins/wasm/wasmedge/loaded.h"
#include "plugins/wasm/wasmedge/sanitise.h"

// What was prepared. Named in C, where the name is a function's, too.
struct gantry_wasm_run {  // NOLINT(readability-identifier-naming)
  gantry::wasm::LoadedModule module;
  WasmEdge_ExecutorContext* executor;
  WasmEdge_StoreContext* store;
  WasmEdge_ModuleInstanceContext* wasi;
  std::string entry;
  gantry::wasm::Returns returns;
  bool initialize;
  uint64_t most_pages;
};

namespace gantry::wasm {
namespace {

using Prepared = struct gantry_wasm_run;

constexpr const char* kStart = "_start";
constexpr const char* kInitialize = "_initialize";
constexpr uint64_t kPageBytes = uint64_t{64} << 10;
constexpr uint64_t kMostPages = uint64_t{64} << 10;
// Of the process that a trap ends, as of abort(3).
constexpr int kAborted = 134;

// Within WasmEdge an exception ends the process, by SIGABRT: which the first of a namespace has not
// to fear. The only one that is known is of memory: its interpreter's stack has no limit.
[[noreturn]] void EndInsideEngine() {
  constexpr std::string_view kText = "the engine cannot go on: out of memory, or in a fault\n";
  if (::write(STDERR_FILENO, kText.data(), kText.size()) < 0) {
    ::_exit(kAborted);  // Nobody reads it.
  }
  ::_exit(kAborted);
}

// How names are looked up is the C library's own business: what an image's nsswitch.conf names it
// would load from that image, and the filter ends who maps a library. Source: glibc,
// nss/nsswitch.h.
Status KeepLookupsBuiltIn() {
  for (const auto& [database, services] :
       {std::pair("hosts", "files dns"), std::pair("services", "files")}) {
    if (::__nss_configure_lookup(database, services) != 0) {
      return FailErrno(errno, "look up {} in {}", database, services);
    }
  }
  return {};
}

Result<std::string> ModuleIn(int artifact) {
  struct stat about{};
  if (artifact < 0) {
    return Fail(Code::kInvalidArgument, "there is no artifact");
  }
  if (::fstat(artifact, &about) != 0) {
    return FailErrno(errno, "look at the module");
  }
  if (about.st_size == 0) {
    return Fail(Code::kInvalidArgument, "the module is empty");
  }
  const auto size = static_cast<size_t>(about.st_size);
  void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, artifact, 0);
  if (at == MAP_FAILED) {
    return FailErrno(errno, "map the module");
  }
  auto out = WithoutCustomSections({static_cast<const char*>(at), size});
  ::munmap(at, size);
  return out;
}

uint64_t PagesOf(uint64_t bytes) {
  return bytes == 0 ? kMostPages : std::min(bytes / kPageBytes, kMostPages);
}

WasmEdge_ConfigureContext* ConfigurationFor(uint64_t pages) {
  WasmEdge_ConfigureContext* config = ::WasmEdge_ConfigureCreate();
  ::WasmEdge_ConfigureSetForceInterpreter(config, true);
  ::WasmEdge_ConfigureSetMaxMemoryPage(config, static_cast<uint32_t>(pages));
  return config;
}

// As WasmEdge takes it: GUEST:HERE, with `:readonly`. One that it cannot open it leaves out.
Result<std::string> WordOf(const gantry_wasm_preopen& directory) {
  for (const std::string_view path : {directory.guest, directory.path}) {
    if (path.contains(':')) {
      return Fail(Code::kInvalidArgument,
                  "the directory '{}': WasmEdge knows none with a colon in its name", path);
    }
  }
  if (!UniqueFd(::open(directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC))) {
    return FailErrno(errno, "open the directory '{}'", directory.path);
  }
  return Format("{}:{}{}", directory.guest, directory.path,
                directory.writable != 0 ? "" : ":readonly");
}

Result<WasmEdge_ModuleInstanceContext*> WasiOf(const gantry_wasm_request& request) {
  std::vector<std::string> words;
  words.reserve(request.preopen_count);
  for (size_t i = 0; i < request.preopen_count; ++i) {
    GANTRY_TRY(std::string word, WordOf(request.preopens[i]));
    words.push_back(std::move(word));
  }
  std::vector<const char*> directories;
  directories.reserve(words.size());
  for (const std::string& word : words) {
    directories.push_back(word.c_str());
  }
  return ::WasmEdge_ModuleInstanceCreateWASI(request.args, static_cast<uint32_t>(request.arg_count),
                                             request.env, static_cast<uint32_t>(request.env_count),
                                             directories.data(),
                                             static_cast<uint32_t>(directories.size()));
}

Result<Prepared*> Prepare(const gantry_wasm_request& request) {
  if (request.kind != GANTRY_WASM_MODULE) {
    return Fail(Code::kInvalidArgument,
                "it is a component; WasmEdge runs modules of WASI preview 1 alone");
  }
  GANTRY_CHECK_OK(KeepLookupsBuiltIn());
  GANTRY_TRY(const std::string bytes, ModuleIn(request.artifact));
  const std::string entry = request.entry == nullptr ? kStart : request.entry;
  const uint64_t pages = PagesOf(request.memory_bytes);
  WasmEdge_ConfigureContext* const config = ConfigurationFor(pages);
  GANTRY_TRY(LoadedModule module, LoadedModule::Load(config, bytes));
  GANTRY_TRY(const Returns returns, module.FindEntry(entry));
  GANTRY_TRY(WasmEdge_ModuleInstanceContext* const wasi, WasiOf(request));
  GANTRY_CHECK_OK(module.CheckImports(wasi));
  WasmEdge_ExecutorContext* const executor = ::WasmEdge_ExecutorCreate(config, nullptr);
  WasmEdge_StoreContext* const store = ::WasmEdge_StoreCreate();
  const WasmEdge_Result registered = ::WasmEdge_ExecutorRegisterImport(executor, store, wasi);
  if (!::WasmEdge_ResultOK(registered)) {
    return Fail(Code::kInternal, "the engine's functions: {}",
                ::WasmEdge_ResultGetMessage(registered));
  }
  const bool initialize = entry != kStart && entry != kInitialize && module.CanRun(kInitialize);
  return new Prepared{.module = module,
                      .executor = executor,
                      .store = store,
                      .wasi = wasi,
                      .entry = entry,
                      .returns = returns,
                      .initialize = initialize,
                      .most_pages = pages};
}

// How it ended, or that it goes on.
struct End {
  gantry_wasm_end how = GANTRY_WASM_EXITED;
  uint32_t code = 0;
  std::string why{};
};

using Ended = std::optional<End>;

// What is no error, and not the guest's exit, goes on.
Ended EndOf(const Prepared& run, const WasmEdge_Result& result) {
  constexpr uint32_t kTerminated = 1;
  if (::WasmEdge_ResultGetCode(result) == kTerminated) {
    return End{.code = ::WasmEdge_ModuleInstanceWASIGetExitCode(run.wasi)};
  }
  if (::WasmEdge_ResultOK(result)) {
    return std::nullopt;
  }
  return End{.how = GANTRY_WASM_TRAPPED,
             .why = Format("wasm trap: {}", ::WasmEdge_ResultGetMessage(result))};
}

// Source: WasmEdge 0.14.1, enum.inc: errors of instantiation are 0x300 to 0x3ff.
bool IsOfInstantiation(const WasmEdge_Result& result) {
  return (::WasmEdge_ResultGetCode(result) >> 8) == 3;
}

Ended BringUp(const Prepared& run, WasmEdge_ModuleInstanceContext*& instance) {
  if (run.module.FirstPages() > run.most_pages) {
    return End{.how = GANTRY_WASM_FAILED,
               .why = Format("the guest cannot be brought up: its memory begins with {} bytes, and "
                             "may have {}",
                             run.module.FirstPages() * kPageBytes, run.most_pages * kPageBytes)};
  }
  const WasmEdge_Result result =
      ::WasmEdge_ExecutorInstantiate(run.executor, &instance, run.store, run.module.get());
  if (IsOfInstantiation(result)) {
    return End{
        .how = GANTRY_WASM_FAILED,
        .why = Format("the guest cannot be brought up: {}", ::WasmEdge_ResultGetMessage(result))};
  }
  return EndOf(run, result);
}

Ended Call(const Prepared& run, const WasmEdge_ModuleInstanceContext* instance,
           std::string_view name, WasmEdge_Value* code) {
  const WasmEdge_FunctionInstanceContext* function =
      ::WasmEdge_ModuleInstanceFindFunction(instance, StringOf(name));
  return EndOf(run, ::WasmEdge_ExecutorInvoke(run.executor, function, nullptr, 0, code,
                                              code == nullptr ? 0 : 1));
}

End Run(const Prepared& run) {
  WasmEdge_ModuleInstanceContext* instance = nullptr;
  if (Ended ended = BringUp(run, instance)) {
    return *std::move(ended);
  }
  if (run.initialize) {
    if (Ended ended = Call(run, instance, kInitialize, nullptr)) {
      return *std::move(ended);
    }
  }
  WasmEdge_Value code{};
  const bool has_code = run.returns == Returns::kCode;
  if (Ended ended = Call(run, instance, run.entry, has_code ? &code : nullptr)) {
    return *std::move(ended);
  }
  return {.code = has_code ? static_cast<uint32_t>(::WasmEdge_ValueGetI32(code)) : 0};
}

int ErrorOf(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return GANTRY_WASM_INVALID;
    case Code::kFailedPrecondition:
      return GANTRY_WASM_MISSING;
    default:
      return GANTRY_WASM_SYSTEM;
  }
}

void Tell(const std::string& text, char* why, size_t size) {
  std::snprintf(why, size, "%s", text.c_str());
}

}  // namespace
}  // namespace gantry::wasm

extern "C" {

int gantry_wasm_prepare(const gantry_wasm_request* request, struct gantry_wasm_run** run, char* why,
                        size_t why_size) {
  std::set_terminate(gantry::wasm::EndInsideEngine);
  ::WasmEdge_LogOff();  // It would be in the container's output.
  const auto prepared = gantry::wasm::Prepare(*request);
  if (!prepared) {
    gantry::wasm::Tell(prepared.error().message, why, why_size);
    return gantry::wasm::ErrorOf(prepared.error().code);
  }
  *run = *prepared;
  return GANTRY_WASM_OK;
}

int gantry_wasm_run(struct gantry_wasm_run* run, uint32_t* code, char* why, size_t why_size) {
  const gantry::wasm::End end = gantry::wasm::Run(*run);
  *code = end.code & 0xff;
  gantry::wasm::Tell(end.why, why, why_size);
  return end.how;
}

const char* gantry_wasm_engine(void) {
  static const std::string name = gantry::Format("wasmedge {}", ::WasmEdge_VersionGet());
  return name.c_str();
}
}

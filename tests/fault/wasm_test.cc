// SPDX-License-Identifier: Apache-2.0
//
// WebAssembly guests: what goes wrong while their module, which is a new one each time, is read,
// compiled and kept, while it is handed over and waits at its gate, at its start and at its end.
#include <filesystem>

#include "tests/fault/harness/ctr_fault_test.h"
#include "tests/harness/host.h"

namespace gantry::fault {
namespace {

class FaultWasm : public CtrFaultTest {
 protected:
  void SetUp() override {
    if (!settings().wasm()) {
      GTEST_SKIP() << "is about the wasm backend";
    }
    CtrFaultTest::SetUp();
    std::filesystem::create_directory(Folder());
  }

  static std::string Folder() { return settings().root + "/modules"; }

  /// The guest `tool`, as no other is: with a custom section of its own.
  static std::string NewModule(const std::string& id) {
    using std::string_literals::operator""s;
    const std::string section = static_cast<char>(id.size()) + id;
    e2e::WriteText(Folder() + "/" + id + ".wasm", e2e::ReadText(settings().guests + "/tool.wasm") +
                                                      "\0"s + static_cast<char>(section.size()) +
                                                      section);
    return "/modules/" + id + ".wasm";
  }

  Life OfAGuest(const std::string& id) {
    constexpr int kTerminated = 143;
    const std::string module = NewModule(id);
    return LifeOf(
        id,
        {CreateAndStart(
             id, {module, "sleep", "1000000"},
             {"--mount", "type=bind,src=" + Folder() + ",dst=/modules,options=rbind:ro"}),
         ExecToDelete(id, {module, "streams", "here"}, {.out = "out here\n", .err = "err here\n"}),
         KillAndTheEnd(id), DeleteAfter(id, kTerminated)});
  }
};

TEST_F(FaultWasm, InEachStep) {
  Sweep("guest", [this](const std::string& suffix) { return OfAGuest(Id(suffix)); });
}

}  // namespace
}  // namespace gantry::fault

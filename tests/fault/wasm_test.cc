// SPDX-License-Identifier: Apache-2.0
//
// WebAssembly guests: what goes wrong while their module, which is a new one each time, is read,
// compiled and kept, while it is handed over and waits at its gate, at its start and at its end.
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/fault/harness/fault_test.h"
#include "tests/harness/host.h"

namespace gantry::fault {
namespace {

using e2e::Output;
using e2e::Words;
using ::testing::ElementsAre;

class FaultWasm : public FaultTest {
 protected:
  void SetUp() override {
    if (!settings().wasm()) {
      GTEST_SKIP() << "is about the wasm backend";
    }
    FaultTest::SetUp();
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

  static Status ToStatus(const Output& output, int expected = 0) {
    return output.status == expected ? Status() : Fail(Code::kUnknown, "{}", output.Text());
  }

  static void Forget(const std::string& id) {
    Ctr({"tasks", "rm", "-f", id});
    Ctr({"containers", "rm", id});
  }

  static std::function<void()> IsIn(const std::string& id, const std::string& state) {
    return [=] { EXPECT_EQ(FindTask(id).state, state); };
  }

  Life OfAGuest(const std::string& id) {
    const std::string module = NewModule(id);
    const Words flags = {"-d", "--mount",
                         "type=bind,src=" + Folder() + ",dst=/modules,options=rbind:ro"};
    const std::vector<Step> steps = {
        {.operation = "Create and Start",
         .run = [=] { return ToStatus(RunContainer(flags, id, {module, "sleep", "1000000"})); },
         .check = IsIn(id, "RUNNING"),
         .undo = [=] { Forget(id); }},
        {.operation = "Exec to Delete",
         .run = [=]() -> Status {
           const Output done = E2eTest::Exec(id, {module, "streams", "here"});
           GANTRY_CHECK_OK(ToStatus(done));
           EXPECT_EQ(done.out, "out here\n");
           EXPECT_EQ(done.err, "err here\n");
           return {};
         },
         .check = IsIn(id, "RUNNING"),
         .optional = true},
        {.operation = "Kill and the end",
         .run = [=]() -> Status {
           GANTRY_CHECK_OK(ToStatus(Ctr({"tasks", "kill", "-s", "TERM", id})));
           EXPECT_TRUE(WaitForState(id, "STOPPED"));
           return {};
         },
         .check = IsIn(id, "STOPPED")},
        {.operation = "Delete",
         .run = [=]() -> Status {
           const Output done = Ctr({"tasks", "rm", id});
           GANTRY_CHECK_OK(ToStatus(done));
           EXPECT_NE(done.err.find("non-zero exit code 143"), std::string::npos) << done.Text();
           return {};
         },
         .check = [=] { EXPECT_EQ(FindTask(id).pid, 0); }},
    };
    return {.steps = steps,
            .end = [=, this](bool undisturbed) { End(id, undisturbed); },
            .give_up = [=] { Forget(id); }};
  }

  void End(const std::string& id, bool undisturbed) {
    EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
    auto topics = e2e::Events::TopicsOnce(events().Until("/tasks/delete", id));
    if (undisturbed) {
      // The exec is left out of lives that have no fault of its own any more.
      std::erase_if(topics, [](const std::string& topic) {
        return topic.contains('(') || topic.starts_with("exec-");
      });
      EXPECT_THAT(topics, ElementsAre("create", "start", "exit", "delete"));
    }
  }
};

TEST_F(FaultWasm, InEachStep) {
  Sweep("guest", [this](const std::string& suffix) { return OfAGuest(Id(suffix)); });
}

}  // namespace
}  // namespace gantry::fault

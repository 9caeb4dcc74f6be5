// SPDX-License-Identifier: Apache-2.0
//
// A client that stays: a terminal, and an input that ends.
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "tests/fault/harness/ctr_fault_test.h"
#include "tests/harness/host.h"

namespace gantry::fault {
namespace {

using e2e::Program;

/// Without the editing of lines, which forgets what was typed early.
constexpr const char* kObeys = "while read -r line; do eval \"$line\"; done";

constexpr const char* kUntilResized =
    "until [ \"$(stty size)\" = '50 132' ]; do usleep 5000; done; echo is-$((50+2))\n";
constexpr std::chrono::milliseconds kLook{300};

class FaultStream : public CtrFaultTest {
 protected:
  using Client = std::shared_ptr<std::unique_ptr<Program>>;

  /// The client says and hears what it should, or what it ended with.
  static Status Says(const Client& client, const std::string& text, const std::string& answer) {
    (*client)->Write(text);
    return (*client)->ReadUntil(answer) ? Status() : Ended(client);
  }

  /// Its Start has been answered, which may be after its first word. The error is the
  /// client's, which ends then.
  Status HasStarted(const Client& client, std::string_view topic, const std::string& container,
                    const std::string& exec = "") {
    const auto started = [&] { return events().HasCome(topic, container, exec); };
    e2e::Eventually(
        [&] { return started() || e2e::WaitGone((*client)->pid(), std::chrono::milliseconds(0)); });
    return started() ? Status() : Ended(client);
  }

  static Status Ended(const Client& client) {
    return Fail(Code::kUnknown, "{}", (*client)->Finish().Text());
  }

  static Status EndsWith(const Client& client, int status) {
    return (*client)->Wait() == status ? Status() : Ended(client);
  }

  void Open(const Client& client, const e2e::Words& words, bool terminal) {
    Program::Options options;
    options.terminal = terminal;
    options.input = true;
    *client = std::make_unique<Program>(node().CtrWords(words), options);
  }

  Life Terminal(const std::string& id) {
    const auto client = std::make_shared<std::unique_ptr<Program>>();
    return {.steps = {{.operation = "Create and Start",
                       .run = [=, this]() -> Status {
                         Open(client, RunWords({"-t"}, id, {"sh", "-c", kObeys}), true);
                         GANTRY_CHECK_OK(Says(client, "echo is-$((40+2))\n", "is-42"));
                         return HasStarted(client, "/tasks/start", id);
                       },
                       .undo = [=, this] { Forget(id); }},
                      {.operation = "ResizePty",
                       .run = [=]() -> Status {
                         (*client)->Write(kUntilResized);
                         // ctr may not listen yet, and does not say when it does.
                         for (unsigned short rows = 51; rows < 150; ++rows) {
                           (*client)->Resize(rows, 132);
                           (*client)->Resize(50, 132);
                           if ((*client)->ReadUntil("is-52", kLook)) {
                             return Status();
                           }
                         }
                         return Ended(client);
                       }},
                      {.operation = "the end",
                       .run =
                           [=] {
                             (*client)->Write("exit 3\n");
                             return EndsWith(client, 3);
                           },
                       .undo = [=, this] { Forget(id); },
                       .again = [] { return Status(); }}},
            .end = [=, this](bool) { Forget(id); },
            .give_up = [=, this] { Forget(id); }};
  }

  Life Input(const std::string& id, const std::string& container) {
    const auto client = std::make_shared<std::unique_ptr<Program>>();
    return {.steps = {{.operation = "Exec and its Start",
                       .run = [=, this]() -> Status {
                         Open(client,
                              {"tasks", "exec", "--fifo-dir", node().fifo_dir(), "--exec-id", id,
                               container, "sh", "-c", "cat; exit 6"},
                              false);
                         GANTRY_CHECK_OK(Says(client, "word\n", "word\n"));
                         return HasStarted(client, "/tasks/exec-started", container, id);
                       }},
                      {.operation = "CloseIO, Wait and Delete", .run = [=] {
                         (*client)->CloseInput();
                         return EndsWith(client, 6);
                       }}}};
  }
};

TEST_F(FaultStream, OfATerminalInEachStep) {
  Sweep("terminal", [this](const std::string& suffix) { return Terminal(Id(suffix)); });
}

TEST_F(FaultStream, OfATerminalUpgradedInEachStep) {
  Sweep(
      "terminal", [this](const std::string& suffix) { return Terminal(Id(suffix)); },
      Of::kUpgrades);
}

TEST_F(FaultStream, OfAnInputInEachStep) {
  const std::string container = Id("-reader");
  StartDetached(container, {"sleep", "1000"});
  Sweep("input",
        [&](const std::string& suffix) { return Input("x" + suffix.substr(1), container); });
  Remove(container);
}

}  // namespace
}  // namespace gantry::fault

// SPDX-License-Identifier: Apache-2.0
//
// A client that stays: a terminal, and an input that ends.
#include <memory>

#include "tests/fault/harness/fault_test.h"

namespace gantry::fault {
namespace {

using e2e::Program;

/// Without the editing of lines, which forgets what was typed early.
constexpr const char* kObeys = "while read -r line; do eval \"$line\"; done";

constexpr const char* kUntilResized =
    "until [ \"$(stty size)\" = '50 132' ]; do usleep 5000; done; echo is-$((50+2))\n";
constexpr std::chrono::milliseconds kLook{300};

class FaultStream : public FaultTest {
 protected:
  using Client = std::shared_ptr<std::unique_ptr<Program>>;

  /// The client says and hears what it should, or what it ended with.
  static Status Says(const Client& client, const std::string& text, const std::string& answer) {
    (*client)->Write(text);
    return (*client)->ReadUntil(answer) ? Status() : Ended(client);
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
                       .run =
                           [=, this] {
                             Open(client, RunWords({"-t"}, id, {"sh", "-c", kObeys}), true);
                             return Says(client, "echo is-$((40+2))\n", "is-42");
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
                       .run =
                           [=, this] {
                             Open(client,
                                  {"tasks", "exec", "--fifo-dir", node().fifo_dir(), "--exec-id",
                                   id, container, "sh", "-c", "cat; exit 6"},
                                  false);
                             return Says(client, "word\n", "word\n");
                           }},
                      {.operation = "CloseIO, Wait and Delete", .run = [=] {
                         (*client)->CloseInput();
                         return EndsWith(client, 6);
                       }}}};
  }

 private:
  static void Forget(const std::string& id) {
    Ctr({"tasks", "rm", "-f", id});
    Ctr({"containers", "rm", id});
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

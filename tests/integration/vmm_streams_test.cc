// SPDX-License-Identifier: Apache-2.0
//
// Streams of processes in a machine: ends, what is long, what is silent.
#include <deque>

#include <gmock/gmock.h>

#include "tests/harness/vmm_test.h"

namespace gantry::e2e {
namespace {

class VmmStreams : public VmmTest {
 protected:
  void SetUp() override {
    VmmTest::SetUp();
    if (!IsSkipped()) {
      id_ = Id();
      StartDetached(id_, {"sleep", "100000"});
    }
  }

  void TearDown() override {
    if (!IsSkipped()) {
      Remove(id_);
    }
    VmmTest::TearDown();
  }

  const std::string& id() const { return id_; }

 private:
  std::string id_;
};

// K2: containerd's client closes the input at once where it has none.
TEST_F(VmmStreams, WithoutInputAreWhole) {
  const Output output =
      Exec(id(), {"sh", "-c",
                  "i=0; while [ $i -lt 10 ]; do echo $i; i=$((i+1)); sleep 0.3; done; "
                  "exit 5"});
  EXPECT_EQ(output.out, "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  EXPECT_EQ(output.status, 5) << output.err;
}

// K3: 0, 1 and 10 MB, and then the end. Not before the process is up: of an input that ends while
// ctr still makes the exec it tells nobody.
TEST_F(VmmStreams, OfInputEndWhereTheClientsEnds) {
  Program::Options options;
  options.input = true;
  for (const size_t size : {size_t{0}, size_t{1'000'000}, size_t{10'000'000}}) {
    Program program =
        StartCtr(node(), ExecWords({}, id(), {"sh", "-c", "echo up; wc -c"}), options);
    ASSERT_TRUE(program.ReadUntil("up\n")) << program.err();
    program.Write(std::string(size, 'x'));
    program.CloseInput();
    EXPECT_EQ(program.Wait(kLong), 0) << program.err();
    EXPECT_EQ(program.out(), "up\n" + std::to_string(size) + "\n");
  }
}

TEST_F(VmmStreams, OfInputComeBackWhole) {
  std::string data;
  for (int i = 0; data.size() < 2'000'000; ++i) {
    data += std::to_string(i) + "\n";
  }
  const Output output = Exec(id(), {"cat"}, {}, data, kLong);
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_TRUE(output.out == data) << output.out.size() << " of " << data.size();
}

TEST_F(VmmStreams, ThatNobodyReadsHoldUpNoOther) {
  Program unread = StartExec(id(), "cat /dev/zero");
  for (int i = 0; i < 5; ++i) {
    const Output output = Exec(id(), {"echo", "on"});
    EXPECT_EQ(output.out, "on\n") << output.Text();
  }
  EXPECT_EQ(Ctr({"tasks", "kill", "-s", "KILL", id()}).status, 0);
  EXPECT_EQ(unread.Wait(kLong), 137) << unread.err();
}

// U5: each has its own code, in one place that waits.
TEST_F(VmmStreams, OfManyExecsAtOnceHaveTheirCodes) {
  constexpr int kAtOnce = 6;
  for (int round = 0; round < 3; ++round) {
    std::vector<Program> execs;
    for (int i = 0; i < kAtOnce; ++i) {
      execs.push_back(StartCtr(
          node(), ExecWords({}, id(), {"sh", "-c", "exit " + std::to_string(20 + i)}), {}));
    }
    for (int i = 0; i < kAtOnce; ++i) {
      EXPECT_EQ(execs[static_cast<size_t>(i)].Wait(), 20 + i);
    }
  }
}

// 300 streams; a translated guest makes a few of them at once.
TEST_F(VmmStreams, OfAHundredExecsAreOpenAtOnce) {
  constexpr size_t kExecs = 100;
  constexpr size_t kStarting = 6;
  std::deque<Program> execs;
  Program::Options options;
  options.input = true;
  const std::string script = "echo up; read x; echo $x; echo $x >&2; read x; exit $x";
  for (size_t i = 0; i < kExecs + kStarting; ++i) {
    if (i < kExecs) {
      execs.push_back(StartCtr(node(), ExecWords({}, id(), {"sh", "-c", script}), options));
    }
    if (i >= kStarting) {
      ASSERT_TRUE(execs[i - kStarting].ReadUntil("up\n")) << execs[i - kStarting].err();
    }
  }
  for (size_t i = 0; i < kExecs; ++i) {
    const std::string word = "word " + std::to_string(i) + "\n";
    execs[i].Write(word + std::to_string(i) + "\n");
    EXPECT_EQ(execs[i].Wait(kLong), static_cast<int>(i)) << execs[i].err();
    EXPECT_EQ(execs[i].out(), "up\n" + word);
    EXPECT_THAT(execs[i].err(), testing::EndsWith(word));
  }
}

TEST_F(VmmStreams, OfATerminalAreOne) {
  Program::Options options;
  options.terminal = true;
  options.rows = 31;
  options.columns = 97;
  Program program = StartCtr(
      node(),
      // ctr says the size once the process runs.
      ExecWords({"--tty"}, id(),
                {"sh", "-c",
                 "read x; until stty size | grep '31 97'; do sleep 0.1; done; echo $x; exit 4"}),
      options);
  program.Write("word\n");
  EXPECT_TRUE(program.ReadUntil("31 97")) << program.out();
  EXPECT_EQ(program.Wait(), 4) << program.out();
}

}  // namespace
}  // namespace gantry::e2e

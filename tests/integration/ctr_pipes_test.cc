// SPDX-License-Identifier: Apache-2.0
//
// Bytes through pipes: many, both ways, exact, to their end.

#include "tests/harness/e2e_test.h"
#include "tests/harness/events.h"

namespace gantry::e2e {
namespace {

constexpr size_t kMuch = 100UL * 1000 * 1000;

// Bytes that repeat nowhere near, so that a lost or doubled block shows.
std::string Bytes(size_t count) {
  std::string bytes(count, '\0');
  uint64_t state = 88172645463325252ULL;
  for (char& byte : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<char>(state >> 56);
  }
  return bytes;
}

std::string Sha256(const std::string& bytes) {
  return RunProgram({"sha256sum"}, bytes, kLong).out.substr(0, 64);
}

class CtrPipes : public E2eTest {};

TEST_F(CtrPipes, CarryMuchIn) {
  const std::string bytes = Bytes(kMuch);
  const std::string id = Id();
  const Output output = RunContainer({"--rm"}, id, {"sha256sum"}, bytes, kLong);
  EXPECT_EQ(output.status, 0) << output.Text();
  EXPECT_EQ(output.out.substr(0, 64), Sha256(bytes));
}

TEST_F(CtrPipes, CarryMuchOut) {
  const Output output = RunContainer({"--rm"}, Id(), {"seq", "1", "12000000"}, {}, kLong);
  EXPECT_EQ(output.status, 0) << output.err;
  const Output expected = RunProgram({"seq", "1", "12000000"}, {}, kLong);
  EXPECT_TRUE(output.out == expected.out)
      << output.out.size() << " of " << expected.out.size() << " bytes";
}

TEST_F(CtrPipes, CarryMuchBothWaysAtOnce) {
  const std::string bytes = Bytes(kMuch);
  const Output output = RunContainer({"--rm"}, Id(), {"cat"}, bytes, kLong);
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_TRUE(output.out == bytes) << output.out.size() << " of " << bytes.size() << " bytes";
}

TEST_F(CtrPipes, CarryMuchBothWaysOfAnExec) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  const std::string bytes = Bytes(kMuch);
  const Output output = Exec(id, {"cat"}, {}, bytes, kLong);
  EXPECT_EQ(output.status, 0) << output.err;
  EXPECT_TRUE(output.out == bytes) << output.out.size() << " of " << bytes.size() << " bytes";
  Remove(id);
}

TEST_F(CtrPipes, GiveTheTailOfAProgramThatEndsAtOnce) {
  for (int round = 0; round < 10; ++round) {
    const Output output =
        RunContainer({"--rm"}, Id(std::to_string(round)), {"sh", "-c", "seq 1 9000; exit 3"});
    EXPECT_EQ(output.status, 3) << output.Text();
    EXPECT_TRUE(output.out.ends_with("\n9000\n")) << output.Text();
  }
}

TEST_F(CtrPipes, StayOpenForTheHeirsOfAnExec) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  Events events(node());
  Program exec =
      StartCtr(node(),
               {"tasks", "exec", "--fifo-dir", node().fifo_dir(), "--exec-id", "heirs", id, "sh",
                "-c", "(until [ -e /go ]; do sleep 0.05; done; echo late) & echo early"},
               {});
  // The exec itself has ended before its heir may speak.
  EXPECT_FALSE(events.Until("/tasks/exit", id, "heirs").empty());
  Exec(id, {"touch", "/go"});
  EXPECT_EQ(exec.Wait(), 0) << exec.err();
  EXPECT_EQ(exec.out(), "early\nlate\n");
  Remove(id);
}

TEST_F(CtrPipes, EndForAReaderThatGoesAway) {
  const std::string id = Id();
  Program program = StartCtr(node(), RunWords({}, id, {"sh", "-c", "echo up; exec cat"}), {});
  ASSERT_TRUE(program.ReadUntil("up\n")) << program.err();
  program.Kill(9);
  program.Wait();
  // The container does not notice: its pipe has a holder.
  EXPECT_NE(FindTask(id).state, "");
  Remove(id);
}

}  // namespace
}  // namespace gantry::e2e

// SPDX-License-Identifier: Apache-2.0
//
// Many guests, at once and one after the other. GANTRY_E2E_SCALE says how many.
#include <cstdlib>
#include <deque>

#include "tests/harness/raw_guest.h"
#include "tests/harness/wasm_test.h"

namespace gantry::e2e {
namespace {

size_t ScaleOfGuests() {
  const char* value = std::getenv("GANTRY_E2E_SCALE");  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr ? std::strtoul(value, nullptr, 10) : 100;
}

size_t ThreadsOf(pid_t pid) { return ListFolder("/proc/" + std::to_string(pid) + "/task").size(); }

class WasmScale : public WasmTest {
 protected:
  void StartIdle(size_t count, const std::string& name) {
    for (size_t i = 0; i < count; ++i) {
      guests_.emplace_back(node(), Id("-" + name + std::to_string(i)), Tool({"sleep", "1000000"}));
      const Status running = guests_.back().Run();
      ASSERT_TRUE(running) << running.error().message;
    }
  }

  void TearDown() override {
    for (RawGuest& guest : guests_) {
      const Status finished = guest.Finish();
      EXPECT_TRUE(finished) << finished.error_or(Error{}).message;
    }
    guests_.clear();
    WasmTest::TearDown();
  }

  std::deque<RawGuest> guests_;
};

TEST_F(WasmScale, OfIdleGuestsAddsNoThreadToEngineAndKeeper) {
  constexpr size_t kFew = 10;
  // What works at once is started when it is needed first.
  ASSERT_NO_FATAL_FAILURE(StartIdle(kFew, "few"));
  const pid_t engine = node().Engine().pid;
  const pid_t keeper = node().Keeper().pid;
  const size_t of_engine = ThreadsOf(engine);
  const size_t of_keeper = ThreadsOf(keeper);
  ASSERT_NO_FATAL_FAILURE(StartIdle(ScaleOfGuests() - kFew, "more"));
  EXPECT_TRUE(Eventually([&] { return ThreadsOf(engine) <= of_engine; }))
      << ThreadsOf(engine) << " instead of " << of_engine;
  EXPECT_TRUE(Eventually([&] { return ThreadsOf(keeper) <= of_keeper; }))
      << ThreadsOf(keeper) << " instead of " << of_keeper;
  for (RawGuest& guest : guests_) {
    const auto state = guest.State();
    ASSERT_TRUE(state) << state.error().message;
    EXPECT_EQ(ThreadsOf(state->pid), 1U);
  }
}

TEST_F(WasmScale, OfGuestsThatHaveReadTheirInputHasAThreadForEach) {
  constexpr int kCount = 5;
  std::vector<Program> programs;
  for (int i = 0; i < kCount; ++i) {
    const std::string id = Id("-" + std::to_string(i));
    Program::Options options;
    options.input = true;
    programs.push_back(
        StartCtr(node(), RunWords(WithGuests({"--rm"}), id, Tool({"cat"})), options));
    programs.back().Write("read\n");
    ASSERT_TRUE(programs.back().ReadUntil("read\n")) << programs.back().err();
    EXPECT_EQ(ThreadsOf(FindTask(id).pid), 1U);
  }
  for (Program& program : programs) {
    program.CloseInput();
    EXPECT_EQ(program.Wait(), 0) << program.err();
  }
}

TEST_F(WasmScale, OfLivesUnderOneIdIsServedEachTime) {
  constexpr int kLives = 100;
  for (int life = 0; life < kLives; ++life) {
    RawGuest guest(node(), Id(), Tool({"exit", std::to_string(life)}));
    const Status running = guest.Run();
    ASSERT_TRUE(running) << "life " << life << ": " << running.error().message;
    ASSERT_EQ(guest.Wait().value_or(1000), static_cast<uint64_t>(life));
    const Status finished = guest.Finish();
    ASSERT_TRUE(finished) << "life " << life << ": " << finished.error().message;
  }
}

TEST_F(WasmScale, OfExitCodesHasEachOfThem) {
  constexpr uint64_t kCodes = 256;
  ASSERT_NO_FATAL_FAILURE(StartIdle(1, "one"));
  for (uint64_t code = 0; code < kCodes; ++code) {
    const std::string text = std::to_string(code);
    const auto ended = guests_.front().Exec("x" + text, Tool({"exit", text}));
    ASSERT_TRUE(ended) << "code " << code << ": " << ended.error().message;
    EXPECT_EQ(*ended, code);
  }
}

}  // namespace
}  // namespace gantry::e2e

// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/logs.h"

#include <gtest/gtest.h>

#include "core/ctl/events.h"

namespace gantry::ctl {
namespace {

const std::vector<LogText>& SomeLogs() {
  static const std::vector<LogText> logs = {
      {"engine",
       "time=2026-01-31T08:15:30.100000Z level=info msg=created ns=k8s.io id=c1\n"
       "time=2026-01-31T08:15:32.000000Z level=info msg=created ns=k8s.io id=c1-other\n"
       "time=2026-01-31T08:15:33.000000Z level=error msg=\"start 'c1': no\" id=pod\n"},
      {"keeper",
       "2026-01-31T08:15:31Z delete instance 'k8s.io/c1'\n"
       "2026-01-31T08:15:29Z an engine ended\n"
       "with more of it"}};
  return logs;
}

TEST(Logs, AreInTheOrderOfTheirTimes) {
  EXPECT_EQ(
      LinesAbout(SomeLogs(), {}, 0),
      "keeper  2026-01-31T08:15:29Z an engine ended\n"
      "keeper  with more of it\n"
      "engine  time=2026-01-31T08:15:30.100000Z level=info msg=created ns=k8s.io id=c1\n"
      "keeper  2026-01-31T08:15:31Z delete instance 'k8s.io/c1'\n"
      "engine  time=2026-01-31T08:15:32.000000Z level=info msg=created ns=k8s.io id=c1-other\n"
      "engine  time=2026-01-31T08:15:33.000000Z level=error msg=\"start 'c1': no\" id=pod\n");
}

TEST(Logs, AboutOneAreThoseThatNameIt) {
  EXPECT_EQ(LinesAbout(SomeLogs(), {"c1"}, 0),
            "engine  time=2026-01-31T08:15:30.100000Z level=info msg=created ns=k8s.io id=c1\n"
            "keeper  2026-01-31T08:15:31Z delete instance 'k8s.io/c1'\n"
            "engine  time=2026-01-31T08:15:33.000000Z level=error msg=\"start 'c1': no\" id=pod\n");
  EXPECT_EQ(LinesAbout(SomeLogs(), {"c"}, 0), "") << "that is no word of any";
}

TEST(Logs, SinceATimeLeaveOutWhatIsOlder) {
  constexpr int64_t kAt = 1'769'847'332'000'000'000;
  EXPECT_EQ(LinesAbout(SomeLogs(), {"c1"}, kAt),
            "engine  time=2026-01-31T08:15:33.000000Z level=error msg=\"start 'c1': no\" id=pod\n");
}

TEST(Logs, OfNothingAreEmpty) { EXPECT_EQ(LinesAbout({{"engine", ""}}, {}, 0), ""); }

TEST(Events, AreLines) {
  v1::Event event;
  event.set_number(3);
  event.set_time_ns(1'769'847'330'250'000'000);
  event.set_type("exec.exited");
  event.set_namespace_("k8s.io");
  event.set_id("c1");
  event.set_sandbox_id("pod");
  event.set_exec_id("x\x1b[2J");
  event.set_pid(7);
  EXPECT_EQ(EventLine(event),
            "2026-01-31T08:15:30.250Z  exec.exited          k8s.io/c1  sandbox=pod  exec=x?[2J  "
            "pid=7  status=0\n");
  EXPECT_EQ(EventJson(event),
            "{\"number\":3,\"time\":\"2026-01-31T08:15:30.250Z\",\"type\":\"exec.exited\","
            "\"namespace\":\"k8s.io\",\"id\":\"c1\",\"sandbox_id\":\"pod\","
            "\"exec_id\":\"x\\u001b[2J\",\"pid\":7,\"exit_status\":0,\"message\":\"\"}\n");
  v1::Event engine;
  engine.set_time_ns(1'769'847'330'000'000'000);
  engine.set_type("engine.started");
  engine.set_pid(9);
  engine.set_message("version 1");
  EXPECT_EQ(EventLine(engine), "2026-01-31T08:15:30.000Z  engine.started       pid=9  version 1\n");
}

}  // namespace
}  // namespace gantry::ctl

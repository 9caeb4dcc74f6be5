// SPDX-License-Identifier: Apache-2.0
#include "core/config/config.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::config {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// The error of a file with this text, or "no error".
std::string ErrorOf(const std::string& text) {
  const auto config = Parse(text, "g.yaml");
  if (config) {
    return "no error";
  }
  EXPECT_EQ(config.error().code, Code::kInvalidArgument);
  return config.error().message;
}

TEST(ConfigLoad, GivesDefaultsForAnAbsentFile) {
  const auto config = Load("/nonexistent/gantry.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->file, "");
  EXPECT_EQ(config->limits.worker_threads, 8);
  ASSERT_NE(config->FindHandler(""), nullptr);
  EXPECT_EQ(config->FindHandler("")->backend, "runc");
}

TEST(ConfigLoad, RefusesADirectory) {
  const auto dir = os::TempDir::Create();
  ASSERT_TRUE(dir.has_value());
  EXPECT_FALSE(Load(dir->path()).has_value());
}

TEST(ConfigLoad, RefusesAFileThatIsTooLong) {
  const auto dir = os::TempDir::Create();
  ASSERT_TRUE(dir.has_value());
  const std::string path = dir->path() + "/gantry.yaml";
  ASSERT_TRUE(ReplaceFile(path, std::string(2 << 20, '#'), 0600).has_value());
  const auto config = Load(path);
  ASSERT_FALSE(config.has_value());
  EXPECT_EQ(config.error().code, Code::kInvalidArgument);
}

TEST(ConfigParse, TakesAnEmptyFileAndEmptySections) {
  EXPECT_EQ(ErrorOf(""), "no error");
  EXPECT_EQ(ErrorOf("limits:\ntimeouts: {}\n"), "no error");
}

TEST(ConfigParse, ReadsValuesWithUnits) {
  const auto config = Parse(
      "log: {level: debug}\n"
      "limits: {max_spec_bytes: 1MiB, worker_threads: 3}\n"
      "timeouts: {create: 90s, kill: 1500ms, pause: 1h, delete: 2 m}\n"
      "io: {fifo_bytes: 65536}\n"
      "hang: {after: 3s, policy: report}\n"
      "grpc: {address: /run/g.sock, containerd: /run/c.sock}\n"
      "metrics: {address: '[::1]:9477', sandboxes: true}\n"
      "tracing: {endpoint: 'unix:///run/otel.sock', sample: 0.25}\n",
      "g.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->log_level, LogLevel::kDebug);
  EXPECT_EQ(config->limits.max_spec_bytes, 1U << 20);
  EXPECT_EQ(config->limits.worker_threads, 3);
  EXPECT_EQ(config->timeouts.create, std::chrono::seconds(90));
  EXPECT_EQ(config->timeouts.kill, Millis(1500));
  EXPECT_EQ(config->timeouts.pause, std::chrono::hours(1));
  EXPECT_EQ(config->timeouts.remove, std::chrono::minutes(2));
  EXPECT_EQ(config->io.fifo_bytes, 65536U);
  EXPECT_EQ(config->hang.after, Millis(3'000));
  EXPECT_FALSE(config->hang.restart);
  EXPECT_EQ(config->grpc.address, "/run/g.sock");
  EXPECT_EQ(config->grpc.containerd, "/run/c.sock");
  EXPECT_EQ(config->metrics.address, "[::1]:9477");
  EXPECT_TRUE(config->metrics.sandboxes);
  EXPECT_EQ(config->tracing.endpoint, "unix:///run/otel.sock");
  EXPECT_EQ(config->tracing.sample, 0.25);
}

TEST(ConfigParse, NamesThePlaceOfAnUnknownKey) {
  EXPECT_EQ(ErrorOf("limits:\n  worker_threads: 2\n  wroker: 2\n"),
            "read configuration 'g.yaml:3:3': limits.wroker: unknown key; known here: "
            "max_spec_bytes, worker_threads, max_workers_per_sandbox, max_queued_calls, "
            "max_queued_calls_per_sandbox, max_calls_per_sandbox, max_bytes_per_sandbox, "
            "max_exec_bytes, max_execs_per_container, max_waits_per_connection, "
            "max_descriptors_per_sandbox");
  EXPECT_THAT(ErrorOf("\nlimit: {}\n"),
              StartsWith("read configuration 'g.yaml:2:1': limit: unknown key"));
}

struct Bad {
  const char* name;
  const char* text;
  const char* error;
};

class ConfigParseBad : public testing::TestWithParam<Bad> {};

TEST_P(ConfigParseBad, SaysWhereAndWhy) {
  EXPECT_THAT(ErrorOf(GetParam().text), HasSubstr(GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    All, ConfigParseBad,
    testing::Values(
        Bad{"Syntax", "limits: [1, 2\nlog: {", "g.yaml:"},
        Bad{"RootIsAList", "- 1\n", "'g.yaml:1:1': expected a map"},
        Bad{"SectionIsAScalar", "limits: 7\n", "'g.yaml:1:9': limits: expected a map"},
        Bad{"NotANumber", "limits:\n  worker_threads: many\n",
            "'g.yaml:2:19': limits.worker_threads: expected a whole number, found 'many'"},
        Bad{"Negative", "limits: {worker_threads: -1}", "expected a whole number, found '-1'"},
        Bad{"TooLarge", "limits: {worker_threads: 257}", "257 is not within 1 to 256"},
        Bad{"Overflow", "limits: {max_spec_bytes: 99999999999999999999}", "expected a size"},
        Bad{"OverflowByUnit", "limits: {max_spec_bytes: 18446744073709551615GiB}",
            "expected a size"},
        Bad{"MetricsOfAllAddresses", "metrics:\n  address: 0.0.0.0:9477\n",
            "'g.yaml:2:12': metrics.address: expected the absolute path of a socket, of at most "
            "107 "
            "bytes, or 127.0.0.1:PORT or [::1]:PORT"},
        Bad{"MetricsOfAName", "metrics: {address: 'localhost:9477'}", "metrics.address: expected"},
        Bad{"MetricsWithoutPort", "metrics: {address: '127.0.0.1:'}", "metrics.address: expected"},
        Bad{"MetricsPortTooLarge", "metrics: {address: '127.0.0.1:65536'}",
            "metrics.address: expected"},
        Bad{"MetricsPortZero", "metrics: {address: '127.0.0.1:0'}", "metrics.address: expected"},
        Bad{"MetricsPortAndMore", "metrics: {address: '[::1]:9477/x'}",
            "metrics.address: expected"},
        Bad{"MetricsSandboxes", "metrics: {sandboxes: yes}",
            "metrics.sandboxes: expected true or false"},
        Bad{"TracingOfAName", "tracing:\n  endpoint: collector:4317\n",
            "'g.yaml:2:13': tracing.endpoint: expected http://HOST:PORT"},
        Bad{"TracingByTls", "tracing: {endpoint: 'https://collector:4317'}",
            "tracing.endpoint: there is no TLS here: name a collector on this node"},
        Bad{"TracingSampleTooLarge", "tracing: {sample: 1.1}",
            "tracing.sample: expected a number from 0 to 1, such as 0.1, found '1.1'"},
        Bad{"TracingSampleNegative", "tracing: {sample: -0.1}", "expected a number from 0 to 1"},
        Bad{"TracingSampleIsNoNumber", "tracing: {sample: nan}", "expected a number from 0 to 1"},
        Bad{"TracingSampleIsAPercentage", "tracing: {sample: 10%}",
            "expected a number from 0 to 1"},
        Bad{"SizeTooSmall", "io: {fifo_bytes: 1KiB}", "1KiB is not within 4KiB to 1MiB"},
        Bad{"UnknownUnit", "io: {fifo_bytes: 1MB}", "expected a size such as 256KiB"},
        Bad{"TimeWithoutUnit", "timeouts: {kill: 10}", "expected a time such as 10s"},
        Bad{"TimeTooLong", "timeouts: {kill: 2h}", "2h is not within 100ms to 3600s"},
        Bad{"NoValue", "limits: {worker_threads: }", "expected a whole number"},
        Bad{"KeyTwice", "log: {level: info}\nlog: {level: info}", "'g.yaml:2:1': log: given twice"},
        Bad{"KeyIsAMap", "{a: 1}: 2", "a key that is not text"},
        Bad{"LogLevel", "log: {level: loud}", "expected debug, info, warning or error"},
        Bad{"GrpcAddress", "grpc: {address: g.sock}", "expected the absolute path of a socket"},
        Bad{"GrpcContainerd", "grpc: {containerd: ''}", "containerd is empty"},
        Bad{"Policy", "hang: {policy: pray}", "expected restart or report"},
        Bad{"Version", "version: 2", "2 is not within 1 to 1"},
        Bad{"HandlerName", "handlers: {a/b: {backend: runc}}", "handlers.a/b: a name has"},
        Bad{"HandlerWithoutBackend", "handlers:\n  x: {}", "handlers.x: backend is missing"},
        Bad{"DefaultHandler", "default_handler: x",
            "'g.yaml:1:18': default_handler: there is no handler 'x'"},
        Bad{"RelativePlugin", "backends: {x: {path: a.so}}", "backends.x: path is not absolute"},
        Bad{"RetryOrder", "events: {retry_min: 2s, retry_max: 1s}", "retry_max is below"},
        Bad{"OptionsAreAList", "handlers: {x: {backend: b, options: [1]}}",
            "handlers.x.options: expected a map"},
        Bad{"OptionTwice", "handlers: {x: {backend: b, options: {a: 1, a: 2}}}", "given twice"},
        Bad{"NulInText", "default_handler: \"a\\0b\"", "default_handler: expected text"}),
    [](const auto& bad) { return std::string(bad.param.name); });

TEST(ConfigParse, BoundsWhatAliasesExpandTo) {
  std::string text =
      "handlers:\n  x:\n    backend: b\n    options:\n      a0: &a0 [1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 9; ++i) {
    text += Format("      a{0}: &a{0} [*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1}]\n", i, i - 1);
  }
  EXPECT_THAT(ErrorOf(text), HasSubstr("more than 10000 values"));
}

TEST(ConfigParse, SurvivesDeepNesting) {
  EXPECT_NE(ErrorOf(std::string(100'000, '[')), "no error");
  EXPECT_NE(ErrorOf("handlers: {x: {backend: b, options: {a: " + std::string(200, '[') +
                    std::string(200, ']') + "}}}"),
            "no error");
}

TEST(ConfigHandlers, KeepTheBuiltInOneAndImplyTheirBackends) {
  const auto config = Parse("handlers: {sandboxed: {backend: gvisor}}\n", "g.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_NE(config->FindHandler("runc"), nullptr);
  EXPECT_NE(config->FindHandler("sandboxed"), nullptr);
  EXPECT_EQ(config->FindHandler("else"), nullptr);
  EXPECT_TRUE(config->backends.contains("gvisor"));
}

TEST(ConfigOptions, ReachTheBackendAsJsonWithTheirTypes) {
  const auto config = Parse(
      "handlers:\n"
      "  x:\n"
      "    backend: b\n"
      "    options:\n"
      "      BinaryName: crun\n"
      "      SystemdCgroup: true\n"
      "      n: 5\n"
      "      f: -1.5e3\n"
      "      quoted: '5'\n"
      "      mode: 0755\n"
      "      none: ~\n"
      "      list: [a, 1]\n"
      "      deep: {key: \"v\\n\"}\n",
      "g.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  const BackendOptions& options = config->FindHandler("x")->options;
  EXPECT_EQ(options.json,
            R"({"BinaryName":"crun","SystemdCgroup":true,"n":5,"f":-1.5e3,"quoted":"5",)"
            R"("mode":"0755","none":null,"list":["a",1],"deep":{"key":"v\n"}})");
  const Handler& handler = *config->FindHandler("x");
  EXPECT_EQ(PlaceOf(*config, handler, "check option 'SystemdCgroup': no"), "g.yaml:6");
  EXPECT_EQ(PlaceOf(*config, handler, "check 'n' in 'deep.key': no"), "g.yaml:13");
  EXPECT_EQ(PlaceOf(*config, handler, "check deep.key: no"), "g.yaml:2");
  EXPECT_EQ(PlaceOf(*config, *config->FindHandler("runc"), "no"), "g.yaml");
}

TEST(ConfigParse, KnowsWhoIsToHaveSomethingReady) {
  const auto config = Parse(
      "handlers:\n"
      "  a: {backend: one, options: {warm: 2}}\n"
      "  b: {backend: one, options: {warm: 1}}\n"
      "  c: {backend: two, options: {warm: 0}}\n"
      "  d: {backend: three, options: {warm: many}}\n"
      "  e: {backend: four}\n"
      "  f: {backend: five, options: {deep: {warm: 1}}}\n"
      "  g: {backend: seven, options: {template: 1}}\n"
      "backends:\n"
      "  four: {options: {warm: 1}}\n"
      "  six: {options: {warm: 1}}\n",
      "g.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(WarmBackends(*config), (std::vector<std::string>{"four", "one", "seven"}));
  EXPECT_TRUE(WarmBackends(Defaults()).empty());
}

}  // namespace
}  // namespace gantry::config

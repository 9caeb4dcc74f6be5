// SPDX-License-Identifier: Apache-2.0
#include "core/door/otlp_request.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/error.h>

#include "proto/opentelemetry/trace_service.pb.h"

namespace gantry::door {
namespace {

namespace otlp_trace = opentelemetry::proto::trace::v1;

v1::Span SpanOf(const std::string& kind, const std::string& what) {
  v1::Span span;
  span.set_kind(kind);
  span.set_what(what);
  return span;
}

opentelemetry::proto::trace::v1::ResourceSpans Encoded(const std::vector<v1::Span>& spans) {
  opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest request;
  EXPECT_TRUE(request.ParseFromString(EncodeSpans({"1.2.3", "node-1"}, spans)));
  EXPECT_EQ(request.resource_spans_size(), 1);
  return request.resource_spans(0);
}

otlp_trace::Span Encoded(const v1::Span& span) {
  return Encoded(std::vector{span}).scope_spans(0).spans(0);
}

std::map<std::string, std::string> AttributesOf(const auto& of) {
  std::map<std::string, std::string> texts;
  for (const auto& attribute : of.attributes()) {
    const auto& value = attribute.value();
    texts[attribute.key()] = value.has_string_value() ? value.string_value()
                             : value.has_bool_value() ? (value.bool_value() ? "true" : "false")
                                                      : std::to_string(value.int_value());
  }
  return texts;
}

TEST(OtlpRequest, SaysWhoSends) {
  const auto sent = Encoded(std::vector{SpanOf("call", "Create"), SpanOf("exit", "exit")});
  EXPECT_EQ(
      AttributesOf(sent.resource()),
      (std::map<std::string, std::string>{
          {"service.name", "gantry"}, {"service.version", "1.2.3"}, {"host.name", "node-1"}}));
  ASSERT_EQ(sent.scope_spans_size(), 1);
  EXPECT_EQ(sent.scope_spans(0).scope().name(), "gantry");
  EXPECT_EQ(sent.scope_spans(0).scope().version(), "1.2.3");
  EXPECT_EQ(sent.scope_spans(0).spans_size(), 2);
}

TEST(OtlpRequest, HasACallAsAServersSpan) {
  v1::Span span = SpanOf("call", "Start");
  span.set_trace_id("0123456789abcdef");
  span.set_span_id("01234567");
  span.set_parent_span_id("76543210");
  span.set_trace_state("a=b");
  span.set_namespace_("k8s.io");
  span.set_id("c1");
  span.set_exec_id("e1");
  span.set_begun_ns(1'000);
  span.set_took_ns(500);
  span.set_waited_ns(20);
  span.set_again(true);

  const otlp_trace::Span out = Encoded(span);

  EXPECT_EQ(out.trace_id(), "0123456789abcdef");
  EXPECT_EQ(out.span_id(), "01234567");
  EXPECT_EQ(out.parent_span_id(), "76543210");
  EXPECT_EQ(out.trace_state(), "a=b");
  EXPECT_EQ(out.flags() & 1, 1U);
  EXPECT_EQ(out.name(), "Start");
  EXPECT_EQ(out.kind(), otlp_trace::Span::SPAN_KIND_SERVER);
  EXPECT_EQ(out.start_time_unix_nano(), 1'000U);
  EXPECT_EQ(out.end_time_unix_nano(), 1'500U);
  EXPECT_EQ(AttributesOf(out),
            (std::map<std::string, std::string>{{"gantry.step", "call"},
                                                {"containerd.namespace", "k8s.io"},
                                                {"container.id", "c1"},
                                                {"gantry.exec.id", "e1"},
                                                {"rpc.method", "Start"},
                                                {"rpc.grpc.status_code", "0"},
                                                {"gantry.waited_ns", "20"},
                                                {"gantry.again", "true"}}));
  EXPECT_EQ(out.status().code(), otlp_trace::Status::STATUS_CODE_UNSET);
}

TEST(OtlpRequest, SaysWhatFailed) {
  v1::Span span = SpanOf("backend", "create");
  span.set_code(static_cast<int>(Code::kNotFound));
  span.set_detail("no such root");
  const otlp_trace::Span out = Encoded(span);
  EXPECT_EQ(out.status().code(), otlp_trace::Status::STATUS_CODE_ERROR);
  EXPECT_EQ(out.status().message(), "no such root");
  EXPECT_FALSE(AttributesOf(out).contains("gantry.detail"));
}

TEST(OtlpRequest, NamesOtherStepsByTheirKind) {
  EXPECT_EQ(Encoded(SpanOf("backend", "create")).name(), "backend create");
  EXPECT_EQ(Encoded(SpanOf("backend", "create")).kind(), otlp_trace::Span::SPAN_KIND_INTERNAL);
  EXPECT_EQ(Encoded(SpanOf("event", "/tasks/exit")).name(), "event /tasks/exit");
  EXPECT_EQ(Encoded(SpanOf("event", "/tasks/exit")).kind(), otlp_trace::Span::SPAN_KIND_PRODUCER);
  v1::Span exit = SpanOf("exit", "exit");
  exit.set_detail("status 3");
  EXPECT_EQ(Encoded(exit).name(), "exit");
  EXPECT_EQ(AttributesOf(Encoded(exit)).at("gantry.detail"), "status 3");
}

}  // namespace
}  // namespace gantry::door

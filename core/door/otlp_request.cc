// SPDX-License-Identifier: Apache-2.0
//
// Names of attributes are OpenTelemetry's where it has one. Source: opentelemetry.io, semantic
// conventions 1.27: service, host, container, rpc.
#include "core/door/otlp_request.h"

#include <cstdint>
#include <string_view>

#include <gantry/error.h>

#include "proto/opentelemetry/trace_service.pb.h"

namespace gantry::door {
namespace {

namespace otlp_common = opentelemetry::proto::common::v1;
namespace otlp_trace = opentelemetry::proto::trace::v1;
namespace otlp_collector = opentelemetry::proto::collector::trace::v1;

constexpr char kName[] = "gantry";
/// W3C's: the trace is kept. What is not kept never comes here.
constexpr uint32_t kSampledFlags = 1;

using Attributes = google::protobuf::RepeatedPtrField<otlp_common::KeyValue>;

otlp_common::AnyValue& Add(Attributes& all, const char* key) {
  otlp_common::KeyValue& one = *all.Add();
  one.set_key(key);
  return *one.mutable_value();
}

void AddText(Attributes& all, const char* key, const std::string& text) {
  if (!text.empty()) {
    Add(all, key).set_string_value(text);
  }
}

bool IsCall(const v1::Span& span) { return span.kind() == "call"; }

/// "Create", "backend create", "event /tasks/create", "exit".
std::string NameOf(const v1::Span& span) {
  return IsCall(span) || span.kind() == span.what() ? span.what() : span.kind() + " " + span.what();
}

otlp_trace::Span::SpanKind KindOf(const v1::Span& span) {
  if (IsCall(span)) {
    return otlp_trace::Span::SPAN_KIND_SERVER;
  }
  return span.kind() == "event" ? otlp_trace::Span::SPAN_KIND_PRODUCER
                                : otlp_trace::Span::SPAN_KIND_INTERNAL;
}

void SetEnd(const v1::Span& span, otlp_trace::Span& out) {
  if (IsCall(span)) {
    Add(*out.mutable_attributes(), "rpc.grpc.status_code").set_int_value(span.code());
  }
  if (span.code() == static_cast<int32_t>(Code::kOk)) {
    AddText(*out.mutable_attributes(), "gantry.detail", span.detail());
    return;
  }
  out.mutable_status()->set_code(otlp_trace::Status::STATUS_CODE_ERROR);
  out.mutable_status()->set_message(span.detail());
}

void Fill(const v1::Span& span, otlp_trace::Span& out) {
  out.set_trace_id(span.trace_id());
  out.set_span_id(span.span_id());
  out.set_parent_span_id(span.parent_span_id());
  out.set_trace_state(span.trace_state());
  out.set_flags(kSampledFlags);
  out.set_name(NameOf(span));
  out.set_kind(KindOf(span));
  out.set_start_time_unix_nano(static_cast<uint64_t>(span.begun_ns()));
  out.set_end_time_unix_nano(static_cast<uint64_t>(span.begun_ns() + span.took_ns()));
  Attributes& attributes = *out.mutable_attributes();
  AddText(attributes, "gantry.step", span.kind());
  AddText(attributes, "containerd.namespace", span.namespace_());
  AddText(attributes, "container.id", span.id());
  AddText(attributes, "gantry.exec.id", span.exec_id());
  if (IsCall(span)) {
    AddText(attributes, "rpc.method", span.what());
  }
  if (span.waited_ns() > 0) {
    Add(attributes, "gantry.waited_ns").set_int_value(span.waited_ns());
  }
  if (span.again()) {
    Add(attributes, "gantry.again").set_bool_value(true);
  }
  SetEnd(span, out);
}

}  // namespace

std::string EncodeSpans(const Sender& sender, const std::vector<v1::Span>& spans) {
  otlp_collector::ExportTraceServiceRequest request;
  otlp_trace::ResourceSpans& of_us = *request.add_resource_spans();
  Attributes& attributes = *of_us.mutable_resource()->mutable_attributes();
  AddText(attributes, "service.name", kName);
  AddText(attributes, "service.version", sender.version);
  AddText(attributes, "host.name", sender.host);
  otlp_trace::ScopeSpans& scope = *of_us.add_scope_spans();
  scope.mutable_scope()->set_name(kName);
  scope.mutable_scope()->set_version(sender.version);
  for (const v1::Span& span : spans) {
    Fill(span, *scope.add_spans());
  }
  return request.SerializeAsString();
}

}  // namespace gantry::door

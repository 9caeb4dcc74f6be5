// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/answer.h"

#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/oci/json.h>

namespace gantry::wasm::fetch {
namespace {

using oci::Json;
using oci::Quote;

constexpr size_t kMaxMessage = 4096;
constexpr size_t kMaxMediaType = 200;

std::string TextOf(const Blob& blob) {
  return Format(R"({{"mediaType":{},"digest":{},"size":{}}})",
                Quote(blob.media_type.substr(0, kMaxMediaType)), Quote(blob.digest), blob.size);
}

std::string TextOf(const ImageAnswer& answer) {
  std::string layers;
  for (const Blob& layer : answer.layers) {
    layers += (layers.empty() ? "" : ",") + TextOf(layer);
  }
  return Format(R"({{"platform":{{"os":{},"architecture":{}}},"layers":[{}]{}}})",
                Quote(answer.platform.os.substr(0, kMaxMediaType)),
                Quote(answer.platform.architecture.substr(0, kMaxMediaType)), layers,
                answer.module ? R"(,"module":)" + TextOf(*answer.module) : std::string());
}

Status ReadBlob(const Json& json, Blob& blob) {
  GANTRY_CHECK_OK(json.CheckObject());
  GANTRY_CHECK_OK(json["mediaType"].Read(blob.media_type));
  GANTRY_CHECK_OK(json["digest"].Read(blob.digest));
  return json["size"].Read(blob.size);
}

Result<Error> ReadError(const Json& json) {
  std::string code;
  Error error;
  GANTRY_CHECK_OK(json["code"].Read(code));
  GANTRY_CHECK_OK(json["message"].Read(error.message));
  for (int number = 0; number <= static_cast<int>(Code::kUnauthenticated); ++number) {
    if (CodeName(static_cast<Code>(number)) == code) {
      error.code = static_cast<Code>(number);
    }
  }
  if (error.code == Code::kOk || error.message.empty()) {
    return json.Wrong("an error without code or message");
  }
  return error;
}

Status ReadImage(const Json& json, ImageAnswer& answer) {
  GANTRY_CHECK_OK(json["platform"]["os"].Read(answer.platform.os));
  GANTRY_CHECK_OK(json["platform"]["architecture"].Read(answer.platform.architecture));
  GANTRY_TRY(const auto layers, json["layers"].Items());
  for (const Json& layer : layers) {
    GANTRY_CHECK_OK(ReadBlob(layer, answer.layers.emplace_back()));
  }
  if (const Json module = json["module"]; !module.absent()) {
    GANTRY_CHECK_OK(ReadBlob(module, answer.module.emplace()));
  }
  return {};
}

/// Whatever is wrong with an answer is our own side's fault, not the caller's.
std::unexpected<Error> NoAnswer(Error error) {
  error.code = Code::kInternal;
  return std::unexpected(std::move(error));
}

/// An object that is no error.
Result<Json> Parse(std::string_view line) {
  auto json = Json::Parse(line, "answer of gantry-wasm-fetch");
  if (!json || !json->is_object()) {
    return NoAnswer(json ? json->Wrong("expected an object").error() : std::move(json).error());
  }
  if (const Json told = (*json)["error"]; !told.absent()) {
    auto error = ReadError(told);
    return error ? std::unexpected(std::move(*error)) : NoAnswer(std::move(error).error());
  }
  return json;
}

}  // namespace

std::string AnswerText(const Result<ImageAnswer>& answer) {
  return answer ? TextOf(*answer) + "\n" : ErrorText(answer.error());
}

std::string ErrorText(const Error& error) {
  return Format("{{\"error\":{{\"code\":{},\"message\":{}}}}}\n", Quote(CodeName(error.code)),
                Quote(error.message.substr(0, kMaxMessage)));
}

Result<ImageAnswer> ReadAnswer(std::string_view line) {
  GANTRY_TRY(const Json json, Parse(line));
  ImageAnswer answer;
  if (Status read = ReadImage(json, answer); !read) {
    return NoAnswer(std::move(read).error());
  }
  return answer;
}

Result<size_t> ReadDigestsAnswer(std::string_view line) {
  GANTRY_TRY(const Json json, Parse(line));
  uint64_t count = 0;
  const Json told = json["digests"];
  if (told.absent()) {
    return NoAnswer(json.Wrong("expected a number of digests").error());
  }
  if (Status read = told.Read(count); !read) {
    return NoAnswer(std::move(read).error());
  }
  return count;
}

}  // namespace gantry::wasm::fetch

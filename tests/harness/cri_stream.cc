// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/cri_stream.h"

#include <charconv>

#include <nlohmann/json.hpp>

namespace gantry::e2e {

bool CriStream::ReadChannel(Channel channel, size_t& matched, std::string_view text,
                            Duration deadline) {
  const auto found = [&] {
    const size_t at = socket_.Received(channel).find(text, matched);
    if (at != std::string::npos) {
      matched = at + text.size();
    }
    return at != std::string::npos;
  };
  return socket_.ReadWhile(found, deadline);
}

bool CriStream::ReadUntil(std::string_view text, Duration deadline) {
  return ReadChannel(kOut, out_matched_, text, deadline);
}

bool CriStream::ReadErrorsUntil(std::string_view text, Duration deadline) {
  return ReadChannel(kErr, err_matched_, text, deadline);
}

void CriStream::Write(std::string_view data) { socket_.Send(kIn, data); }

void CriStream::Resize(int rows, int columns) {
  socket_.Send(kResize, nlohmann::json{{"Width", columns}, {"Height", rows}}.dump());
}

int CriStream::Wait(Duration deadline) {
  socket_.ReadToEnd(deadline);
  const auto told = nlohmann::json::parse(status(), nullptr, false);
  if (told.is_discarded() || !told.is_object()) {
    return kNone;
  }
  if (told.value("status", "") == "Success") {
    return 0;
  }
  int code = kNone;
  const auto details = told.value("details", nlohmann::json::object());
  for (const auto& cause : details.value("causes", nlohmann::json::array())) {
    const std::string text = cause.value("message", "");
    if (cause.value("reason", "") == "ExitCode") {
      std::from_chars(text.data(), text.data() + text.size(), code);
    }
  }
  return code;
}

}  // namespace gantry::e2e

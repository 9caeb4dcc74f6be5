// SPDX-License-Identifier: Apache-2.0
#include "core/trace/step.h"

#include <algorithm>
#include <array>

#include "core/store/checksum.h"

namespace gantry::trace {
namespace {

constexpr std::string_view kMagic = "GANTRYT1";
constexpr size_t kBeginBytes = 28;
constexpr size_t kEndBytes = 20;
static_assert(kBeginBytes + kMaxNs + kMaxId + kMaxExec + kMaxWhat + kEndBytes <= kSlotBytes);

constexpr uint8_t kAgain = 1;

template <class T>
void Append(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>((static_cast<uint64_t>(value) >> (8 * i)) & 0xff));
  }
}

/// Takes numbers and texts off the front; once something is missing, all that follows is, too.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  template <class T>
  T Number() {
    const std::string_view bytes = Text(sizeof(T));
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
    }
    return static_cast<T>(value);
  }

  std::string_view Text(size_t bytes) {
    good_ = good_ && bytes <= left_.size();
    const std::string_view text = left_.substr(0, good_ ? bytes : 0);
    left_.remove_prefix(text.size());
    return text;
  }

  bool good() const { return good_; }

  std::string_view left() const { return left_; }

 private:
  std::string_view left_;
  bool good_ = true;
};

/// Of the number of a step and what is said of it, the place of the checksum left out.
uint32_t Checksum(uint64_t number, std::string_view before, std::string_view after) {
  std::string checked;
  checked.reserve(kSlotBytes + sizeof(number));
  Append(checked, number);
  checked += before;
  checked += after;
  return store::Crc32c(checked);
}

std::optional<End> DecodeEnd(uint64_t number, std::string_view bytes) {
  Reader reader(bytes);
  End end;
  end.took_ns = reader.Number<int64_t>();
  const auto waited_us = reader.Number<uint32_t>();
  end.waited_ns = int64_t{waited_us} * 1000;
  const auto checksum = reader.Number<uint32_t>();
  end.code = static_cast<Code>(reader.Number<uint8_t>());
  const auto length = reader.Number<uint8_t>();
  reader.Number<uint16_t>();
  end.detail = reader.Text(length);
  if (!reader.good()) {
    return std::nullopt;
  }
  const size_t size = bytes.size() - reader.left().size();
  const bool whole = checksum == Checksum(number, bytes.substr(0, 12), bytes.substr(16, size - 16));
  return whole ? std::optional(std::move(end)) : std::nullopt;
}

}  // namespace

std::string_view KindName(Kind kind) {
  constexpr std::array<std::string_view, 8> kNames = {"?",    "call",     "backend", "event",
                                                      "exit", "recovery", "engine",  "keeper"};
  const auto number = static_cast<size_t>(kind);
  return number < kNames.size() ? kNames.at(number) : kNames.front();
}

std::string EncodeBegin(uint64_t number, int64_t begun_ns, Kind kind, bool again,
                        const Subject& subject, std::string_view what) {
  const std::array<std::string_view, 4> texts = {
      subject.ns.substr(0, kMaxNs), subject.id.substr(0, kMaxId), subject.exec.substr(0, kMaxExec),
      what.substr(0, kMaxWhat)};
  std::string before;
  Append(before, number);
  Append(before, begun_ns);
  std::string after;
  after.reserve(kSlotBytes);
  Append(after, static_cast<uint8_t>(kind));
  Append(after, again ? kAgain : uint8_t{0});
  for (const std::string_view text : texts) {
    Append(after, static_cast<uint8_t>(text.size()));
  }
  Append(after, uint16_t{0});
  for (const std::string_view text : texts) {
    after += text;
  }
  std::string out = before;
  out.reserve(kSlotBytes);
  Append(out, Checksum(number, before, after));
  return out + after;
}

std::string EncodeEnd(uint64_t number, size_t begin_bytes, const End& end) {
  std::string before;
  Append(before, end.took_ns);
  Append(before,
         static_cast<uint32_t>(std::clamp<int64_t>(end.waited_ns / 1000, 0, int64_t{UINT32_MAX})));
  const std::string_view detail =
      std::string_view(end.detail).substr(0, kSlotBytes - begin_bytes - kEndBytes);
  std::string after;
  Append(after, static_cast<uint8_t>(end.code));
  Append(after, static_cast<uint8_t>(detail.size()));
  Append(after, uint16_t{0});
  after += detail;
  std::string out = before;
  Append(out, Checksum(number, before, after));
  return out + after;
}

std::optional<Step> DecodeSlot(std::string_view slot) {
  Reader reader(slot);
  Step step;
  step.number = reader.Number<uint64_t>();
  step.begun_ns = reader.Number<int64_t>();
  const auto checksum = reader.Number<uint32_t>();
  step.kind = static_cast<Kind>(reader.Number<uint8_t>());
  step.again = (reader.Number<uint8_t>() & kAgain) != 0;
  std::array<uint8_t, 4> lengths{};
  for (uint8_t& length : lengths) {
    length = reader.Number<uint8_t>();
  }
  reader.Number<uint16_t>();
  step.ns = reader.Text(lengths[0]);
  step.id = reader.Text(lengths[1]);
  step.exec = reader.Text(lengths[2]);
  step.what = reader.Text(lengths[3]);
  if (!reader.good() || step.number == 0) {
    return std::nullopt;
  }
  const size_t size = slot.size() - reader.left().size();
  if (checksum != Checksum(step.number, slot.substr(0, 16), slot.substr(20, size - 20))) {
    return std::nullopt;
  }
  step.end = DecodeEnd(step.number, reader.left());
  return step;
}

std::string EncodeHead() {
  std::string head(kMagic);
  Append(head, static_cast<uint32_t>(kSlotBytes));
  Append(head, static_cast<uint32_t>(kSlots));
  head.resize(kSlotBytes);
  return head;
}

}  // namespace gantry::trace

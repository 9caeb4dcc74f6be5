// SPDX-License-Identifier: Apache-2.0
//
// A file of records, each with its length, checksum, number and state, written so that it reads
// well wherever the writer was killed. A record is appended whole or not at all: the first one
// that does not check out ends the journal. Erasing one changes a single byte. Compaction first
// copies what lives to the end, then moves the beginning: killed in between, both copies are
// there, with one number, and the second is dropped when it is read.
#include "core/events/journal.h"

#include <array>
#include <optional>
#include <set>
#include <utility>

#include <gantry/toolkit/descriptors/memfd.h>

namespace gantry::events {
namespace {

constexpr std::string_view kMagic = "GANTRYJ1";
constexpr uint64_t kBeginOffset = 8;
/// Of the file: magic and where the records begin.
constexpr uint64_t kHeaderBytes = 16;
/// Of a record: length, CRC, sequence number, state.
constexpr uint64_t kRecordBytes = 17;
constexpr uint64_t kStateOffset = 16;
constexpr uint64_t kMaxBody = uint64_t{4} << 20;
constexpr uint64_t kPage = 4096;
/// Dead bytes below this are not worth any work.
constexpr uint64_t kSlack = uint64_t{256} << 10;
constexpr char kLiveState = 'L';
constexpr char kErasedState = 'E';

template <class T>
void AppendNumber(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
  }
}

template <class T>
T ReadNumber(std::string_view bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(static_cast<T>(static_cast<uint8_t>(bytes[i])) << (8 * i));
  }
  return value;
}

constexpr std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1) != 0 ? 0xedb88320U : 0);
    }
    table[i] = value;
  }
  return table;
}

/// CRC-32 as in Ethernet and zip. Source: ISO/IEC 8802-3, polynomial 0x04c11db7 reflected.
uint32_t Crc(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = MakeCrcTable();
  uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc = kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff] ^ (crc >> 8);
  }
  return ~crc;
}

std::string EncodeRecord(uint64_t seq, std::string_view body) {
  std::string checked;
  AppendNumber(checked, seq);
  std::string out;
  out.reserve(kRecordBytes + body.size());
  AppendNumber(out, static_cast<uint32_t>(body.size()));
  AppendNumber(out, Crc(checked.append(body)));
  AppendNumber(out, seq);
  out.push_back(kLiveState);
  out.append(body);
  return out;
}

struct Scanned {
  Journal::Record record;
  bool live = false;
};

/// The record at `offset`; none where there is no whole one.
Result<std::optional<Scanned>> ReadRecord(int fd, uint64_t offset) {
  GANTRY_TRY(const std::string head, ReadAt(fd, offset, kRecordBytes));
  if (head.size() < kRecordBytes) {
    return std::nullopt;
  }
  const std::string_view view = head;
  const auto length = ReadNumber<uint32_t>(view);
  const char state = head[kStateOffset];
  if (length > kMaxBody || (state != kLiveState && state != kErasedState)) {
    return std::nullopt;
  }
  GANTRY_TRY(std::string body, ReadAt(fd, offset + kRecordBytes, length));
  std::string checked(view.substr(8, 8));
  if (body.size() < length || Crc(checked.append(body)) != ReadNumber<uint32_t>(view.substr(4))) {
    return std::nullopt;
  }
  return Scanned{
      {ReadNumber<uint64_t>(view.substr(8)), std::move(body), {offset, kRecordBytes + length}},
      state == kLiveState};
}

}  // namespace

Result<Journal> Journal::Open(UniqueFd memfd, std::vector<Record>* records) {
  Journal journal(std::move(memfd));
  const int fd = journal.memfd_.get();
  GANTRY_TRY(const uint64_t size, FileSize(fd));
  GANTRY_TRY(const std::string header, ReadAt(fd, 0, kHeaderBytes));
  if (header.size() < kHeaderBytes || !header.starts_with(kMagic)) {
    GANTRY_CHECK_OK(journal.Reset());
    return journal;
  }
  journal.begin_ = ReadNumber<uint64_t>(std::string_view(header).substr(kBeginOffset));
  journal.end_ = journal.begin_;
  if (journal.begin_ < kHeaderBytes || journal.begin_ > size) {
    GANTRY_CHECK_OK(journal.Reset());
    return journal;
  }
  std::set<uint64_t> seen;
  while (true) {
    GANTRY_TRY(std::optional<Scanned> found, ReadRecord(fd, journal.end_));
    if (!found) {
      break;
    }
    const Position position = found->record.position;
    journal.end_ += position.bytes;
    if (!found->live) {
      continue;
    }
    journal.live_bytes_ += position.bytes;
    if (!seen.insert(found->record.seq).second) {
      // Left by a compaction that did not get to its end.
      GANTRY_CHECK_OK(journal.Erase(position));
      continue;
    }
    records->push_back(std::move(found->record));
  }
  GANTRY_CHECK_OK(Truncate(fd, journal.end_));
  return journal;
}

Status Journal::SetBegin(uint64_t begin) {
  std::string bytes;
  AppendNumber(bytes, begin);
  GANTRY_CHECK_OK(WriteAt(memfd_.get(), kBeginOffset, bytes));
  begin_ = begin;
  return {};
}

Status Journal::Reset() {
  // First the end: a beginning behind the file's end reads as an empty journal.
  GANTRY_CHECK_OK(Truncate(memfd_.get(), 0));
  std::string header(kMagic);
  AppendNumber(header, kHeaderBytes);
  GANTRY_CHECK_OK(WriteAt(memfd_.get(), 0, header));
  begin_ = kHeaderBytes;
  end_ = kHeaderBytes;
  live_bytes_ = 0;
  return {};
}

Result<Journal::Position> Journal::Append(uint64_t seq, std::string_view body) {
  if (body.size() > kMaxBody) {
    return Fail(Code::kInvalidArgument, "append to journal: {} bytes are more than {}", body.size(),
                kMaxBody);
  }
  const std::string record = EncodeRecord(seq, body);
  if (Status status = WriteAt(memfd_.get(), end_, record); !status) {
    IgnoreError(Truncate(memfd_.get(), end_), "a part of a record is not read as one");
    return std::unexpected(std::move(status).error());
  }
  const Position position{end_, record.size()};
  end_ += record.size();
  live_bytes_ += record.size();
  return position;
}

Status Journal::Erase(Position position) {
  GANTRY_CHECK_OK(
      WriteAt(memfd_.get(), position.offset + kStateOffset, std::string_view(&kErasedState, 1)));
  live_bytes_ -= position.bytes;
  if (live_bytes_ == 0 && end_ - kHeaderBytes > kSlack) {
    return Reset();
  }
  return {};
}

Result<std::string> Journal::Read(Position position) const {
  GANTRY_TRY(std::optional<Scanned> found, ReadRecord(memfd_.get(), position.offset));
  if (!found || !found->live) {
    return Fail(Code::kDataLoss, "read the record at {} of a journal: there is none",
                position.offset);
  }
  return std::move(found->record.body);
}

bool Journal::WorthCompacting() const {
  const uint64_t used = end_ - begin_;
  return used > kSlack && used / 2 > live_bytes_;
}

Status Journal::Compact(std::vector<Live>& live) {
  uint64_t to = end_;
  for (Live& record : live) {
    Result<std::string> bytes = ReadAt(memfd_.get(), record.from.offset, record.from.bytes);
    Status status = bytes ? WriteAt(memfd_.get(), to, *bytes)
                          : Status(std::unexpected(std::move(bytes).error()));
    if (!status) {
      IgnoreError(Truncate(memfd_.get(), end_), "copies are dropped when read as well");
      return status;
    }
    record.to = Position{to, record.from.bytes};
    to += record.from.bytes;
  }
  if (Status status = SetBegin(end_); !status) {
    IgnoreError(Truncate(memfd_.get(), end_), "copies are dropped when read as well");
    return status;
  }
  end_ = to;
  IgnoreError(PunchHole(memfd_.get(), kPage, begin_ / kPage * kPage),
              "the space is lost until the journal is empty");
  return {};
}

}  // namespace gantry::events

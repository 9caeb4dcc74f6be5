// SPDX-License-Identifier: Apache-2.0
//
// The conversation with the front end: what it may say, and what it may not.
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/vmm/vsock/vsock_fixture.h"

namespace gantry::vmm::vsock {
namespace {

template <class T>
std::span<const char> Bytes(const T& value) {
  return GuestDriver::Bytes(value);
}

struct Table {
  MemoryTableHead head{.count = 1};
  MemoryRegion region{.guest_address = GuestDriver::kGuestBase,
                      .size = GuestDriver::kMemoryBytes,
                      .front_end_address = GuestDriver::kFrontEndBase};
};

class VsockFrontEnd : public VsockTest {
 protected:
  bool Share(const Table& table) {
    const int file = driver_->memory_file();
    return driver_->Order(Request::kSetMemoryTable, Bytes(table), std::span(&file, 1));
  }

  bool SetAddresses(const QueueAddresses& addresses) {
    return driver_->Order(Request::kSetQueueAddresses, Bytes(addresses));
  }

  /// The device has ended the conversation.
  bool IsOver() {
    return Eventually([&] { return driver_->HasLeft(); });
  }
};

TEST_F(VsockFrontEnd, IsToldWhatTheDeviceCan) {
  Open();
  uint64_t value = 0;
  const auto take = [&](Request request) {
    const auto answer = driver_->Ask(request, {});
    EXPECT_TRUE(answer && answer->size() == sizeof(value));
    memcpy(&value, answer->data(), sizeof(value));
    return value;
  };
  // Version 1, and no indirect descriptors.
  EXPECT_EQ(take(Request::kGetFeatures), 1ULL << 32 | 1ULL << 30 | 1ULL << 29);
  EXPECT_EQ(take(Request::kGetProtocolFeatures), 1ULL << 0 | 1ULL << 3 | 1ULL << 9 | 1ULL << 13);
  EXPECT_EQ(take(Request::kGetQueueCount), 3U);
}

TEST_F(VsockFrontEnd, ReadsTheGuestsCid) {
  Open();
  const ConfigHead head{.size = 8};
  uint64_t cid = 0;
  std::string request(Bytes(head).begin(), Bytes(head).end());
  request.append(sizeof(cid), '\0');
  const auto answer = driver_->Ask(Request::kGetConfig, request);
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->size(), request.size());
  memcpy(&cid, answer->data() + sizeof(head), sizeof(cid));
  EXPECT_EQ(cid, 3U);
}

TEST_F(VsockFrontEnd, ReadsNothingBehindTheConfiguration) {
  Open();
  for (const ConfigHead head :
       {ConfigHead{.offset = 1, .size = 8}, ConfigHead{.size = 9},
        ConfigHead{.offset = UINT32_MAX, .size = 2}, ConfigHead{.offset = 8, .size = UINT32_MAX}}) {
    const auto answer = driver_->Ask(Request::kGetConfig, Bytes(head));
    ASSERT_TRUE(answer);
    EXPECT_EQ(*answer, "");
  }
}

TEST_F(VsockFrontEnd, MaySendByteByByte) {
  Open({}, kMaxStreams, true);
  driver_->Leave();
  const UniqueFd socket = *ConnectUnix(front_end_path_);
  Settle();

  struct {
    MessageHeader header{static_cast<uint32_t>(Request::kGetQueueBase), kVersion,
                         sizeof(QueueNumber)};
    QueueNumber number;
  } request;

  for (const char one : Bytes(request)) {
    ASSERT_EQ(write(socket.get(), &one, 1), 1);
    Settle();
  }
  std::string answer(sizeof(request) + 1, '\0');
  EXPECT_EQ(read(socket.get(), answer.data(), answer.size()),
            static_cast<ssize_t>(sizeof(request)));
}

TEST_F(VsockFrontEnd, IsRefusedWhatWasNotOffered) {
  Open();
  ASSERT_TRUE(driver_->Introduce());
  EXPECT_FALSE(driver_->Order(Request::kSetFeatures, Bytes(kFeatures | 1ULL << 28)));
  EXPECT_FALSE(driver_->Order(Request::kSetProtocolFeatures, Bytes(uint64_t{1} << 12)));
  EXPECT_FALSE(driver_->Order(Request::kSetConfig, Bytes(ConfigHead{})));
  EXPECT_FALSE(driver_->Order(Request{31}, {}));
  EXPECT_FALSE(driver_->Order(Request{4711}, {}));
  EXPECT_TRUE(driver_->Bring());
}

TEST_F(VsockFrontEnd, WithoutAnAnswerAFailureIsTheEnd) {
  Open();
  ASSERT_TRUE(driver_->Introduce());
  ASSERT_TRUE(driver_->Say(31, kVersion, {}, {}));
  EXPECT_TRUE(IsOver());
}

TEST_F(VsockFrontEnd, OfAnotherVersionIsNotServed) {
  Open();
  ASSERT_TRUE(driver_->Say(1, 2, {}, {}));
  EXPECT_TRUE(IsOver());
}

TEST_F(VsockFrontEnd, MayNotSendMuch) {
  Open();
  ASSERT_TRUE(driver_->Say(5, kVersion, std::string(kMaxPayload + 1, 'x'), {}));
  EXPECT_TRUE(IsOver());
}

TEST_F(VsockFrontEnd, MayNotSendManyDescriptors) {
  Open();
  const std::vector<int> many(GuestMemory::kMaxRegions + 1, driver_->memory_file());
  ASSERT_TRUE(driver_->Say(5, kVersion, std::string(8, '\0'), many));
  EXPECT_TRUE(IsOver());
}

TEST_F(VsockFrontEnd, SharesNoMemoryThatThereIsNot) {
  Open();
  ASSERT_TRUE(driver_->Introduce());
  const auto refused = [&](auto change) {
    Table table;
    change(table);
    return !Share(table);
  };
  EXPECT_TRUE(refused([](Table& table) { table.region.size = 0; }));
  EXPECT_TRUE(refused([](Table& table) { table.region.size += 1; }));
  EXPECT_TRUE(refused([](Table& table) { table.region.file_offset = 1; }));
  EXPECT_TRUE(refused([](Table& table) { table.region.file_offset = UINT64_MAX; }));
  EXPECT_TRUE(refused([](Table& table) { table.region.guest_address = UINT64_MAX; }));
  EXPECT_TRUE(refused([](Table& table) { table.region.front_end_address = UINT64_MAX - 5; }));
  EXPECT_TRUE(refused([](Table& table) { table.region.size = UINT64_MAX; }));
  EXPECT_TRUE(refused([](Table& table) { table.head.count = 2; }));
  EXPECT_TRUE(refused([](Table& table) { table.head.count = UINT32_MAX; }));
  EXPECT_FALSE(driver_->Order(Request::kSetMemoryTable, Bytes(Table{})));
  EXPECT_FALSE(driver_->Order(Request::kSetMemoryTable, {}));
  EXPECT_TRUE(driver_->Bring());
}

TEST_F(VsockFrontEnd, SharesFilesAlone) {
  Open();
  ASSERT_TRUE(driver_->Introduce());
  const UniqueFd event(eventfd(0, EFD_CLOEXEC));
  const int fd = event.get();
  EXPECT_FALSE(driver_->Order(Request::kSetMemoryTable, Bytes(Table{}), std::span(&fd, 1)));
}

TEST_F(VsockFrontEnd, MayShareMemoryAnew) {
  Boot();
  const UniqueFd listener = Listen(1025);
  auto [socket, end] = DialOut(listener, 1025);
  ASSERT_TRUE(driver_->ShareMemory());
  ExpectCarries(*socket, end);
}

TEST_F(VsockFrontEnd, TakesMemoryAwayFromQueuesThatRun) {
  Boot();
  EXPECT_FALSE(driver_->Order(Request::kSetMemoryTable, Bytes(MemoryTableHead{})));
  EXPECT_FALSE(server_->device().is_running());
  EXPECT_TRUE(driver_->StopQueue(0));
}

TEST_F(VsockFrontEnd, PutsQueuesIntoTheMemoryAlone) {
  Open();
  ASSERT_TRUE(driver_->Introduce() && driver_->ShareMemory() && driver_->Enable(0, true));
  const int kick = eventfd(0, EFD_CLOEXEC);
  const auto refused = [&](uint32_t size, auto change) {
    QueueAddresses addresses{.descriptors = GuestDriver::kFrontEndBase,
                             .used = GuestDriver::kFrontEndBase + 0x2000,
                             .available = GuestDriver::kFrontEndBase + 0x1000};
    change(addresses);
    EXPECT_TRUE(driver_->Order(Request::kSetQueueSize, Bytes(QueueNumber{0, size})));
    EXPECT_TRUE(driver_->StopQueue(0));
    EXPECT_TRUE(SetAddresses(addresses));
    return !driver_->Order(Request::kSetQueueKick, Bytes(uint64_t{0}), std::span(&kick, 1));
  };
  const auto keep = [](QueueAddresses&) {};
  EXPECT_TRUE(refused(0, keep));
  EXPECT_TRUE(refused(100, keep));
  EXPECT_TRUE(refused(2048, keep));
  EXPECT_TRUE(refused(UINT32_MAX, keep));
  EXPECT_TRUE(refused(128, [](QueueAddresses& all) { all.descriptors += 8; }));
  EXPECT_TRUE(refused(128, [](QueueAddresses& all) { all.available += 1; }));
  EXPECT_TRUE(refused(128, [](QueueAddresses& all) { all.used += 2; }));
  EXPECT_TRUE(refused(128, [](QueueAddresses& all) { all.used = 0; }));
  EXPECT_TRUE(refused(128, [](QueueAddresses& all) { all.used = UINT64_MAX; }));
  EXPECT_TRUE(refused(128, [](QueueAddresses& all) {
    all.descriptors = GuestDriver::kFrontEndBase + GuestDriver::kMemoryBytes - 16;
  }));
  EXPECT_FALSE(refused(128, keep));
  close(kick);
}

TEST_F(VsockFrontEnd, KnowsThreeQueues) {
  Open();
  ASSERT_TRUE(driver_->Introduce() && driver_->ShareMemory());
  // That for events is taken and has none.
  EXPECT_TRUE(driver_->Order(Request::kSetQueueSize, Bytes(QueueNumber{2, 128})));
  EXPECT_TRUE(driver_->Enable(2, true));
  EXPECT_FALSE(driver_->Enable(3, true));
  EXPECT_FALSE(driver_->Order(Request::kSetQueueBase, Bytes(QueueNumber{UINT32_MAX, 0})));
  EXPECT_FALSE(driver_->Order(Request::kSetQueueKick, Bytes(uint64_t{0x1ff})));
  EXPECT_FALSE(driver_->Order(Request::kSetQueueCall, Bytes(uint64_t{0})));
}

TEST_F(VsockFrontEnd, KeepsStreamsOfAGuestThatIsPaused) {
  Boot();
  const UniqueFd listener = Listen(1025);
  auto [socket, end] = DialOut(listener, 1025);
  const auto receive_base = driver_->StopQueue(0);
  const auto send_base = driver_->StopQueue(1);
  ASSERT_TRUE(receive_base && send_base);
  end.Write("meanwhile");
  HostEnd late = HostEnd::Connect(path_);
  late.Write("CONNECT 52\n");
  Settle();
  EXPECT_FALSE(end.ended());
  guest_->Listen(52);
  ASSERT_TRUE(driver_->StartQueue(0, *receive_base) && driver_->StartQueue(1, *send_base));
  std::string arrived;
  EXPECT_TRUE(Eventually([&] { return (arrived += guest_->Read(*socket)) == "meanwhile"; }));
  EXPECT_TRUE(Eventually([&] { return late.Read().starts_with("OK "); }));
}

TEST_F(VsockFrontEnd, DropsStreamsOfADriverThatIsGone) {
  Boot();
  const UniqueFd listener = Listen(1025);
  auto [socket, end] = DialOut(listener, 1025);
  ASSERT_TRUE(driver_->StopQueue(0) && driver_->StopQueue(1));
  driver_->Restart();
  guest_.emplace(*driver_);
  ASSERT_TRUE(driver_->StartQueue(0, 0) && driver_->StartQueue(1, 0));
  EXPECT_TRUE(Eventually([&] { return end.Read().empty() && end.ended(); }));
  auto [second, second_end] = DialOut(listener, 1025);
  ExpectCarries(*second, second_end);
}

TEST_F(VsockFrontEnd, CanBeFollowedByAnother) {
  Boot({}, kMaxStreams, true);
  const UniqueFd listener = Listen(1025);
  auto [first, first_end] = DialOut(listener, 1025);
  driver_->Leave();
  EXPECT_TRUE(Eventually([&] { return first_end.Read().empty() && first_end.ended(); }));
  Plug();
  ASSERT_TRUE(driver_->Bring());
  auto [second, second_end] = DialOut(listener, 1025);
  ExpectCarries(*second, second_end);
}

}  // namespace
}  // namespace gantry::vmm::vsock

// SPDX-License-Identifier: Apache-2.0
// Waiting: for time, for standard input and for what is always ready.
#include <stdio.h>
#include <string.h>

#include "suite.h"

enum { kMs = 1000000 };

static const __wasi_timestamp_t kVeryLong = 3600ULL * 1000 * kMs;

static __wasi_subscription_t OfClock(__wasi_userdata_t name, __wasi_clockid_t clock,
                                     __wasi_timestamp_t time, __wasi_subclockflags_t flags) {
  __wasi_subscription_t sub;
  memset(&sub, 0, sizeof sub);
  sub.userdata = name;
  sub.u.tag = __WASI_EVENTTYPE_CLOCK;
  sub.u.u.clock.id = clock;
  sub.u.u.clock.timeout = time;
  sub.u.u.clock.flags = flags;
  return sub;
}

static __wasi_subscription_t OfFile(__wasi_userdata_t name, __wasi_fd_t file,
                                    __wasi_eventtype_t type) {
  __wasi_subscription_t sub;
  memset(&sub, 0, sizeof sub);
  sub.userdata = name;
  sub.u.tag = type;
  sub.u.u.fd_read.file_descriptor = file;
  return sub;
}

// The first event is that one, without an error, and there are so many.
static void ExpectEvents(const __wasi_subscription_t* subs, __wasi_size_t count,
                         __wasi_size_t ready, __wasi_userdata_t name, __wasi_eventtype_t type) {
  __wasi_event_t events[4];
  memset(events, 0xff, sizeof events);
  __wasi_size_t got = 0;
  EXPECT_OK(__wasi_poll_oneoff(subs, events, count, &got));
  EXPECT(ready, got);
  EXPECT(name, events[0].userdata);
  EXPECT(type, events[0].type);
  EXPECT(0, events[0].error);
}

static void CheckClocks(void) {
  const __wasi_subclockflags_t absolute = __WASI_SUBCLOCKFLAGS_SUBSCRIPTION_CLOCK_ABSTIME;
  __wasi_timestamp_t before = 0;
  __wasi_timestamp_t after = 0;
  EXPECT_OK(__wasi_clock_time_get(__WASI_CLOCKID_MONOTONIC, 1, &before));
  __wasi_subscription_t subs[2] = {OfClock(7, __WASI_CLOCKID_MONOTONIC, 3 * kMs, 0)};
  ExpectEvents(subs, 1, 1, 7, __WASI_EVENTTYPE_CLOCK);
  EXPECT_OK(__wasi_clock_time_get(__WASI_CLOCKID_MONOTONIC, 1, &after));
  EXPECT_TRUE(after - before >= 3 * kMs);
  subs[0] = OfClock(8, __WASI_CLOCKID_REALTIME, kMs, 0);
  ExpectEvents(subs, 1, 1, 8, __WASI_EVENTTYPE_CLOCK);
  // What has passed is there at once.
  subs[0] = OfClock(9, __WASI_CLOCKID_REALTIME, 1, absolute);
  ExpectEvents(subs, 1, 1, 9, __WASI_EVENTTYPE_CLOCK);
  subs[0] = OfClock(10, __WASI_CLOCKID_MONOTONIC, before, absolute);
  ExpectEvents(subs, 1, 1, 10, __WASI_EVENTTYPE_CLOCK);
  // Of two the one that comes first.
  subs[0] = OfClock(11, __WASI_CLOCKID_MONOTONIC, kVeryLong, 0);
  subs[1] = OfClock(12, __WASI_CLOCKID_MONOTONIC, kMs, 0);
  ExpectEvents(subs, 2, 1, 12, __WASI_EVENTTYPE_CLOCK);
}

// Files are always ready, and so is what can be written.
static void CheckFiles(void) {
  const __wasi_fd_t folder = NewFolder("poll_oneoff");
  Close(NewFile(folder, "file", "text"));
  const __wasi_fd_t file = Open(folder, "file", 0, TO_READ | TO_WRITE);
  __wasi_subscription_t subs[3] = {OfFile(21, 1, __WASI_EVENTTYPE_FD_WRITE),
                                   OfClock(22, __WASI_CLOCKID_MONOTONIC, kVeryLong, 0)};
  ExpectEvents(subs, 2, 1, 21, __WASI_EVENTTYPE_FD_WRITE);
  subs[0] = OfFile(23, file, __WASI_EVENTTYPE_FD_WRITE);
  ExpectEvents(subs, 2, 1, 23, __WASI_EVENTTYPE_FD_WRITE);
  subs[0] = OfFile(24, file, __WASI_EVENTTYPE_FD_READ);
  ExpectEvents(subs, 2, 1, 24, __WASI_EVENTTYPE_FD_READ);
  subs[2] = OfFile(25, file, __WASI_EVENTTYPE_FD_READ);
  ExpectEvents(subs, 3, 2, 24, __WASI_EVENTTYPE_FD_READ);
  ExpectEvents(subs + 1, 2, 1, 25, __WASI_EVENTTYPE_FD_READ);
}

void Test_poll_oneoff(void) {
  CheckClocks();
  CheckFiles();
  __wasi_event_t event;
  __wasi_size_t got = 0;
  __wasi_subscription_t sub = OfClock(1, 2, kMs, __WASI_SUBCLOCKFLAGS_SUBSCRIPTION_CLOCK_ABSTIME);
  EXPECT(__WASI_ERRNO_INVAL, __wasi_poll_oneoff(&sub, &event, 1, &got));
  EXPECT(__WASI_ERRNO_INVAL, __wasi_poll_oneoff(&sub, &event, 0, &got));
  sub = OfFile(1, NOT_OPEN, __WASI_EVENTTYPE_FD_READ);
  EXPECT(__WASI_ERRNO_BADF, __wasi_poll_oneoff(&sub, &event, 1, &got));
  sub = OfFile(1, Given("/"), __WASI_EVENTTYPE_FD_READ);
  EXPECT(__WASI_ERRNO_BADF, __wasi_poll_oneoff(&sub, &event, 1, &got));
  sub = OfFile(1, 0, __WASI_EVENTTYPE_FD_WRITE);
  EXPECT(__WASI_ERRNO_BADF, __wasi_poll_oneoff(&sub, &event, 1, &got));
}

void PollInput(void) {
  const __wasi_subscription_t subs[2] = {OfFile(31, 0, __WASI_EVENTTYPE_FD_READ),
                                         OfClock(32, __WASI_CLOCKID_MONOTONIC, kMs, 0)};
  // Nobody has said anything.
  ExpectEvents(subs, 2, 1, 32, __WASI_EVENTTYPE_CLOCK);
  puts("waits");
  fflush(stdout);
  ExpectEvents(subs, 1, 1, 31, __WASI_EVENTTYPE_FD_READ);
  char text[8] = "";
  __wasi_size_t got = 0;
  EXPECT_OK(Read(0, text, sizeof text, &got));
  EXPECT(1, got);
  EXPECT('x', text[0]);
  puts("read");
  fflush(stdout);
  // The end is something to read, too.
  ExpectEvents(subs, 1, 1, 31, __WASI_EVENTTYPE_FD_READ);
  EXPECT_OK(Read(0, text, sizeof text, &got));
  EXPECT(0, got);
}

// What a watch sends to etcd and when; every answer is timed by the test.
#include "storage/etcd/etcd_watch.h"

#include <gmock/gmock.h>

#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "rpc/etcd/etcd_codec.h"
#include "storage/etcd/testing/scripted_transport.h"

namespace drakkar::storage {
namespace {

namespace etcd = rpc::etcd;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

etcd::Event Put(const std::string& key, std::int64_t revision) {
  etcd::Event event;
  event.kv = {.key = key, .value = "v", .create_revision = 2, .mod_revision = revision};
  return event;
}

class EtcdWatchTest : public ::testing::Test {
 protected:
  explicit EtcdWatchTest(std::size_t members = 2) {
    EtcdClientOptions options;
    for (std::size_t i = 0; i < members; ++i) {
      options.endpoints.push_back(
          {.url = StrCat("unix:///", i), .host = "", .port = 0, .socket_path = StrCat("/", i)});
    }
    client_ = std::make_unique<EtcdClient>(loop_, loop_.random(), transport_, std::move(options));
  }
  void Connect(std::size_t member, bool connected = true) {
    transport_.channels[member].on_connection_change(connected);
    loop_.RunUntilIdle();
  }
  void StartWatch(Revision after = 5) {
    EtcdWatch::Callbacks callbacks;
    callbacks.on_events = [this](const std::vector<WatchEvent>& events, Revision up_to) {
      for (const WatchEvent& event : events)
        seen_.push_back(StrCat(event.key, "@", event.revision));
      seen_.push_back(StrCat("up to ", up_to));
      if (destroys_) watch_.reset();
    };
    callbacks.on_closed = [this](const Error& why) {
      seen_.push_back(StrCat("closed: ", why.message));
      if (destroys_) watch_.reset();
    };
    callbacks.on_compacted = [this](Revision revision) {
      seen_.push_back(StrCat("compacted ", revision));
      if (destroys_) watch_.reset();
    };
    watch_ = std::make_unique<EtcdWatch>(loop_, loop_.random(), *client_, "k", after,
                                         std::move(callbacks));
    watch_->Start();
    loop_.RunUntilIdle();
  }
  // The method of the call that waits for its answer.
  std::string Waiting() const {
    if (transport_.calls.empty()) return "nothing";
    EXPECT_EQ(transport_.calls.size(), 1u);
    EXPECT_EQ(transport_.calls[0].request.timeout, seconds(3));
    return transport_.calls[0].request.method;
  }
  void AnswerStatus(const char* version = "3.5.13") {
    ASSERT_EQ(Waiting(), etcd::kStatusMethod);
    transport_.Answer(Encode(etcd::StatusResponse{.header = {}, .version = version}));
  }
  void AnswerHistory() {
    ASSERT_EQ(Waiting(), etcd::kRangeMethod);
    transport_.Answer(Encode(etcd::RangeResponse{}));
  }
  ScriptedTransport::Stream& stream() { return *transport_.streams.back(); }
  // Answers up to an accepted stream.
  void Open(const char* version = "3.5.13") {
    const std::size_t before = transport_.streams.size();
    AnswerStatus(version);
    AnswerHistory();
    ASSERT_EQ(transport_.streams.size(), before + 1);
    Created();
  }
  void Created() {
    etcd::WatchResponse created;
    created.created = true;
    created.header.revision = 100;
    stream().callbacks.on_message(Encode(created));
  }
  void Deliver(std::vector<etcd::Event> events) {
    etcd::WatchResponse response;
    response.header.revision = 100;
    response.events = std::move(events);
    stream().callbacks.on_message(Encode(response));
  }
  void Progress(std::int64_t revision) {
    etcd::WatchResponse response;
    response.header.revision = revision;
    stream().callbacks.on_message(Encode(response));
  }
  void Cancel(std::int64_t compacted) {
    etcd::WatchResponse response;
    response.canceled = true;
    response.compact_revision = compacted;
    stream().callbacks.on_message(Encode(response));
  }
  // How often progress was asked for on the newest stream.
  std::size_t Asked() {
    std::size_t asked = 0;
    for (const std::string& message : stream().sent) {
      const auto request = etcd::DecodeWatchRequest(message);
      if (request.ok() && std::holds_alternative<etcd::WatchProgress>(*request)) ++asked;
    }
    return asked;
  }

  SeededLoop loop_;
  ScriptedTransport transport_;
  std::unique_ptr<EtcdClient> client_;
  std::unique_ptr<EtcdWatch> watch_;
  std::vector<std::string> seen_;
  bool destroys_ = false;
};

TEST_F(EtcdWatchTest, BeforeItsStreamAMemberIsAskedForItsVersionAndTheHistory) {
  StartWatch();
  EXPECT_EQ(Waiting(), "nothing") << "no member is connected";
  Connect(1);
  AnswerStatus();
  ASSERT_EQ(Waiting(), etcd::kRangeMethod);
  EXPECT_EQ(etcd::DecodeRangeRequest(transport_.calls[0].request.message).value(),
            (etcd::RangeRequest{.key = std::string(1, '\0'),
                                .range_end = "",
                                .revision = 5,
                                .serializable = true,
                                .count_only = true}))
      << "the revision reached, from that member's own state";
  AnswerHistory();
  EXPECT_EQ(stream().member, 1u);
  EXPECT_EQ(stream().request.method, etcd::kWatchMethod);
  EXPECT_THAT(stream().request.metadata,
              ElementsAre(std::pair<std::string, std::string>("hasleader", "true")));
  ASSERT_EQ(stream().sent.size(), 1u);
  const auto create =
      std::get<etcd::WatchCreate>(etcd::DecodeWatchRequest(stream().sent[0]).value());
  EXPECT_EQ(create.key, "k");
  EXPECT_EQ(create.range_end, "l");
  EXPECT_EQ(create.start_revision, 6);
  Created();
  Deliver({Put("k1", 6), Put("k2", 8)});
  EXPECT_THAT(seen_, ElementsAre("k1@6", "k2@8", "up to 8"));
}

TEST_F(EtcdWatchTest, AMemberThatReportsProgressTooEarlyIsWatchedAsAWhole) {
  Connect(0);
  StartWatch();
  AnswerStatus("3.4.23");
  AnswerHistory();
  const auto create =
      std::get<etcd::WatchCreate>(etcd::DecodeWatchRequest(stream().sent[0]).value());
  EXPECT_EQ(create.key, std::string(1, '\0'));
  Created();
  watch_->WantProgress(9);
  loop_.Advance(seconds(1));
  EXPECT_EQ(Asked(), 0u) << "every revision arrives by itself";
  Deliver({Put("other", 9)});
  EXPECT_THAT(seen_, ElementsAre("up to 9"));
}

TEST_F(EtcdWatchTest, AWatchFromACompactedRevisionIsClosed) {
  Connect(0);
  StartWatch();
  AnswerStatus();
  transport_.Fail({ErrorCode::kExpired, "etcdserver: mvcc: required revision has been compacted"});
  EXPECT_THAT(seen_, ElementsAre("closed: etcdserver: mvcc: required revision has been compacted"));
  EXPECT_THAT(transport_.streams, IsEmpty());
  loop_.Advance(seconds(60));
  EXPECT_EQ(Waiting(), "nothing") << "nothing is retried";
}

TEST_F(EtcdWatchTest, AMemberThatLagsBehindIsWatchedAllTheSame) {
  Connect(0);
  StartWatch();
  AnswerStatus();
  transport_.Fail(
      {ErrorCode::kExpired, "etcdserver: mvcc: required revision is a future revision"});
  ASSERT_EQ(transport_.streams.size(), 1u);
  Created();
  Deliver({Put("k1", 6)});
  EXPECT_THAT(seen_, ElementsAre("k1@6", "up to 6"));
}

TEST_F(EtcdWatchTest, AfterAnyFailureAnotherMemberIsTriedSoon) {
  Connect(0);
  Connect(1);
  StartWatch();
  std::size_t member = transport_.calls.at(0).member;
  const auto expect_other = [&](const char* after) {
    EXPECT_EQ(Waiting(), "nothing") << after << ": not at once";
    loop_.Advance(seconds(2));
    ASSERT_EQ(Waiting(), etcd::kStatusMethod) << after;
    EXPECT_NE(transport_.calls[0].member, member) << after;
    member = transport_.calls[0].member;
  };
  transport_.Fail(Unavailable("no"));
  expect_other("status");
  transport_.Answer("not a message");
  expect_other("malformed status");
  AnswerStatus();
  transport_.Fail(Unavailable("no"));
  expect_other("history");
  Open();
  stream().callbacks.on_message("not a message");
  expect_other("malformed event");
  Open();
  Cancel(0);
  expect_other("cancelled");
  Open();
  stream().callbacks.on_end(Ok());
  expect_other("end");
  Open();
  stream().callbacks.on_end(Unavailable("broken"));
  expect_other("broken stream");
  Open();
  EXPECT_THAT(seen_, IsEmpty());
}

TEST_F(EtcdWatchTest, AStreamResumesBehindWhatWasDelivered) {
  Connect(0);
  StartWatch();
  Open();
  Deliver({Put("k1", 6)});
  stream().callbacks.on_end(Unavailable("broken"));
  loop_.Advance(seconds(2));
  AnswerStatus();
  EXPECT_EQ(etcd::DecodeRangeRequest(transport_.calls.at(0).request.message)->revision, 6);
  AnswerHistory();
  EXPECT_EQ(std::get<etcd::WatchCreate>(etcd::DecodeWatchRequest(stream().sent[0]).value())
                .start_revision,
            7);
}

TEST_F(EtcdWatchTest, WhatAnAbandonedAttemptStillSaysIsIgnored) {
  Connect(0);
  StartWatch();
  Open();
  const std::shared_ptr<ScriptedTransport::Stream> old = transport_.streams.back();
  old->callbacks.on_end(Unavailable("broken"));
  etcd::WatchResponse late;
  late.header.revision = 100;
  late.events = {Put("k1", 6)};
  old->callbacks.on_message(Encode(late));
  old->callbacks.on_end(Unavailable("broken again"));
  EXPECT_THAT(seen_, IsEmpty());
  loop_.Advance(seconds(2));
  EXPECT_FALSE(old->open) << "it is cancelled when the next one begins";
  Open();
  EXPECT_EQ(transport_.streams.size(), 2u);
}

TEST_F(EtcdWatchTest, PausesBetweenAttemptsGrowUntilAStreamIsAccepted) {
  Connect(0);
  StartWatch();
  const auto pause = [&](bool accepted) {
    if (accepted) Open();
    if (accepted) stream().callbacks.on_end(Ok());
    if (!accepted) transport_.Fail(Unavailable("no"));
    const MonotonicTime before = loop_.clock().Monotonic();
    while (Waiting() == "nothing") EXPECT_TRUE(loop_.AdvanceToNextTimer(seconds(60)));
    return loop_.clock().Monotonic() - before;
  };
  EXPECT_LE(pause(false), milliseconds(30));
  for (int i = 0; i < 8; ++i) pause(false);
  const Duration longest = pause(false);
  EXPECT_GE(longest, seconds(1));
  EXPECT_LE(longest, milliseconds(1'500));
  EXPECT_LE(pause(true), milliseconds(30));
}

TEST_F(EtcdWatchTest, ProgressIsAskedForUntilTheWantedRevisionIsReached) {
  Connect(0);
  StartWatch();
  watch_->WantProgress(8);
  AnswerStatus();
  AnswerHistory();
  EXPECT_EQ(Asked(), 0u) << "not before the watch is accepted";
  Created();
  EXPECT_EQ(Asked(), 1u);
  loop_.Advance(milliseconds(99));
  EXPECT_EQ(Asked(), 1u);
  loop_.Advance(milliseconds(1));
  EXPECT_EQ(Asked(), 2u) << "a member that lags behind drops the request";
  watch_->WantProgress(8);
  watch_->WantProgress(7);
  EXPECT_EQ(Asked(), 2u) << "nothing new is wanted";
  Deliver({Put("k1", 7)});
  EXPECT_EQ(Asked(), 2u) << "the request in flight is for this revision";
  Progress(8);
  EXPECT_EQ(watch_->reached(), 8);
  loop_.Advance(seconds(1));
  EXPECT_EQ(Asked(), 2u);
  watch_->WantProgress(8);
  EXPECT_EQ(Asked(), 2u) << "it is there already";
  watch_->WantProgress(9);
  EXPECT_EQ(Asked(), 3u);
  watch_->WantProgress(12);
  EXPECT_EQ(Asked(), 3u) << "one at a time";
  Progress(9);
  EXPECT_EQ(Asked(), 4u) << "that one was sent too early for the newer revision";
  Progress(12);
  loop_.Advance(seconds(1));
  EXPECT_EQ(Asked(), 4u);
}

TEST_F(EtcdWatchTest, ProgressIsAskedForAgainOnTheNextStream) {
  Connect(0);
  StartWatch();
  Open();
  watch_->WantProgress(8);
  EXPECT_EQ(Asked(), 1u);
  stream().callbacks.on_end(Unavailable("broken"));
  const std::shared_ptr<ScriptedTransport::Stream> old = transport_.streams.back();
  const std::size_t sent = old->sent.size();
  watch_->WantProgress(9);
  while (Waiting() == "nothing") ASSERT_TRUE(loop_.AdvanceToNextTimer(seconds(60)));
  loop_.Advance(seconds(1));
  EXPECT_EQ(old->sent.size(), sent) << "a stream that has ended is left alone";
  Open();
  EXPECT_EQ(Asked(), 1u);
}

TEST_F(EtcdWatchTest, CompactionOfTheHistoryIsReportedAndEndsTheWatch) {
  Connect(0);
  StartWatch();
  Open();
  watch_->WantProgress(8);
  Cancel(20);
  EXPECT_THAT(seen_, ElementsAre("compacted 20", HasSubstr("closed: ")));
  const std::size_t sent = stream().sent.size();
  loop_.Advance(seconds(60));
  EXPECT_EQ(Waiting(), "nothing");
  EXPECT_EQ(stream().sent.size(), sent);
  Deliver({Put("k1", 30)});
  EXPECT_EQ(seen_.size(), 2u) << "nothing is delivered after the end";
}

TEST_F(EtcdWatchTest, ACallbackMayDestroyTheWatch) {
  Connect(0);
  for (const char* what : {"compacted", "events", "closed"}) {
    seen_.clear();
    destroys_ = true;
    StartWatch();
    const std::string_view which = what;
    if (which == "closed") {
      AnswerStatus();
      transport_.Fail(
          {ErrorCode::kExpired, "etcdserver: mvcc: required revision has been compacted"});
    } else {
      Open();
      watch_->WantProgress(9);
      // The message is handled by the callback of a stream that the watch owns.
      const auto on_message = stream().callbacks.on_message;
      etcd::WatchResponse response;
      response.header.revision = 100;
      response.canceled = which == "compacted";
      response.compact_revision = which == "compacted" ? 20 : 0;
      if (which == "events") response.events = {Put("k1", 6)};
      on_message(Encode(response));
    }
    EXPECT_EQ(watch_, nullptr) << what;
    EXPECT_EQ(seen_.size(), which == "events" ? 2u : 1u) << what;
    loop_.Advance(seconds(60));
    EXPECT_EQ(Waiting(), "nothing") << what;
  }
}

TEST_F(EtcdWatchTest, AWatchThatIsGoneIsNotOpenedWhenAMemberConnects) {
  StartWatch();
  watch_.reset();
  Connect(0);
  EXPECT_EQ(Waiting(), "nothing");
  StartWatch();
  ASSERT_EQ(Waiting(), etcd::kStatusMethod);
  watch_.reset();
  AnswerStatus();
  EXPECT_EQ(Waiting(), "nothing");
}

}  // namespace
}  // namespace drakkar::storage

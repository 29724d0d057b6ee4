#include "apiserver/http/watch_stream.h"

#include <deque>
#include <utility>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/conversion/skip_operations_form.h"
#include "apiserver/conversion/versions.h"
#include "apiserver/http/encode.h"
#include "base/text/text.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {
namespace {

// Kubernetes sends one about once a minute, so that clients learn the current version even without
// changes.
constexpr Duration kBookmarkInterval = std::chrono::seconds(60);

class WatchStream final : public WatchReader, public std::enable_shared_from_this<WatchStream> {
 public:
  WatchStream(EventLoop& loop, ChangeFeed& feed, WatchEvents& events, WatchStreamOptions options,
              std::shared_ptr<net::ResponseWriter> writer)
      : loop_(loop),
        feed_(feed),
        events_(events),
        options_(std::move(options)),
        kind_(*options_.request.kind),
        writer_(std::move(writer)),
        sent_(events.Sent(kind_)) {}

  void Start() {
    ChangeFeed::Opening opening;
    // No version given: the current state as ADDED events, then changes.
    opening.list_first = options_.send_initial_events.value_or(
        options_.request.resource_version.empty() || options_.request.resource_version == "0");
    opening.wants_usage =
        options_.negotiated.shape == Shape::kTable && kind_.plural == "resourceslices";
    opening.request = std::move(options_.request);
    feed_.Open(std::move(opening), shared_from_this());
  }

 private:
  void Refuse(const Failure& failure) override {
    EncodedBody encoded = EncodeFailure(options_.negotiated, failure);
    writer_->Send(failure.code, {{"Content-Type", encoded.content_type}}, std::move(encoded.body));
  }

  void Begin(Beginning beginning, std::unique_ptr<Subscription> subscription) override {
    if (writer_->is_closed()) return;
    subscription_ = std::move(subscription);
    plan_ = std::move(beginning.plan);
    usage_ = std::move(beginning.usage);
    writer_->StartStream(200, {{"Content-Type", std::string(WatchContentType(options_.negotiated))},
                               {"Cache-Control", "no-cache, private"}});
    // The stream owns itself until the response ends.
    writer_->OnClosed([self = shared_from_this()](bool) mutable { self->End(); });
    for (const api::ObjectPtr& object : beginning.initial) WriteEvent("ADDED", object);
    if (options_.send_initial_events.value_or(false) && options_.bookmarks) {
      WriteBookmark(beginning.initial_revision, /*initial_end=*/true);
    }
    for (const Change& change : beginning.backlog) WriteChange(change.type, change.object);
    if (options_.timeout) {
      timeout_ = loop_.RunAfter(*options_.timeout, [weak = weak_from_this()] {
        if (auto self = weak.lock()) self->Finish();
      });
    }
    if (options_.bookmarks) ScheduleBookmark();
  }

  void OnChanges(const std::vector<Change>& changes,
                 const std::shared_ptr<const DeviceUsage>& usage) override {
    const auto self = shared_from_this();
    usage_ = usage;
    for (const Change& change : changes) {
      if (const auto type = WatchCache::TypeFor(plan_.options, change)) {
        WriteChange(*type,
                    WatchCache::IsLeaving(*type, change) ? events_.Leaving(change) : change.object);
      }
    }
    if (writer_ != nullptr && writer_->pending_bytes() > kMaxPendingBytes) {
      OnClosed(FellBehindFailure());
    }
  }

  // From here on the client gets only the event that says why; it has kExpiredGrace to read that
  // far.
  void OnClosed(const Failure& why) override {
    if (writer_ == nullptr) return;
    subscription_.reset();
    timeout_.reset();
    bookmark_.reset();
    Negotiated plain = options_.negotiated;
    plain.shape = Shape::kObject;
    net::Body body;
    AppendEvent(plain, "ERROR", std::make_shared<const api::Object>(why.ToTree()), body);
    for (net::Segment& segment : body) writer_->Write(std::move(segment));
    writer_->OnDrained([weak = weak_from_this()] {
      if (auto self = weak.lock()) self->Finish();
    });
    timeout_ = loop_.RunAfter(kExpiredGrace, [weak = weak_from_this()] {
      auto self = weak.lock();
      if (self == nullptr || self->writer_ == nullptr) return;
      self->writer_->Abort();
      self->End();
    });
  }

  void WriteChange(ChangeType type, const api::ObjectPtr& stored) {
    // Those behind a change that is being converted wait, so that the order stays.
    if (!held_.empty()) {
      if (held_.size() >= kMaxHeldChanges) return OnClosed(FellBehindFailure());
      held_.push_back({type, stored});
      return;
    }
    const api::ObjectPtr object =
        plan_.version == nullptr ? stored : ConvertObjectTo(stored, *plan_.version);
    if (object == nullptr) {
      held_.push_back({type, stored});
      return ConvertHeld();
    }
    switch (type) {
      case ChangeType::kAdded:
        return WriteEvent("ADDED", object);
      case ChangeType::kModified:
        return WriteEvent("MODIFIED", object);
      case ChangeType::kDeleted:
        return WriteEvent("DELETED", object);
      case ChangeType::kBookmark:
        return;
    }
  }

  void ConvertHeld() {
    feed_.Convert(held_.front().object, *plan_.version,
                  [weak = weak_from_this()](std::optional<Failure> failure) {
                    const auto self = weak.lock();
                    if (self == nullptr || self->writer_ == nullptr) return;
                    if (failure) {
                      self->held_.clear();
                      return self->OnClosed(*failure);
                    }
                    std::deque<Held> waiting = std::exchange(self->held_, {});
                    for (const Held& each : waiting) {
                      if (self->writer_ == nullptr) return;
                      self->WriteChange(each.type, each.object);
                    }
                  });
  }

  void WriteEvent(std::string_view type, const api::ObjectPtr& stored) {
    if (writer_ == nullptr || writer_->is_closed()) return;
    const api::ObjectPtr object =
        options_.skip_operations_as_list ? WithSkipOperationsAsList(stored) : stored;
    if (options_.negotiated.shape != Shape::kTable) return Write(type, object);
    sent_.Add();
    TableOptions table;
    table.omit_columns = sent_columns_;
    table.include_object = options_.include_object;
    sent_columns_ = true;
    for (const net::Segment& segment :
         events_.Table(options_.negotiated, type, kind_, object, table, usage_)) {
      writer_->Write(segment);
    }
  }

  void Write(std::string_view type, const api::ObjectPtr& object) {
    sent_.Add();
    if (net::Segment event = events_.Event(options_.negotiated, type, object)) {
      return writer_->Write(std::move(event));
    }
    net::Body body;
    AppendEvent(options_.negotiated, type, object, body);
    for (net::Segment& segment : body) writer_->Write(std::move(segment));
  }

  void WriteBookmark(storage::Revision revision, bool initial_end) {
    if (writer_ == nullptr || writer_->is_closed()) return;
    api::Draft object = api::Draft::Object();
    object["kind"] = kind_.kind;
    object["apiVersion"] =
        kind_.group.empty() ? std::string(kind_.version) : StrCat(kind_.group, "/", kind_.version);
    object["metadata"]["resourceVersion"] = std::to_string(revision);
    object["metadata"]["creationTimestamp"] = nullptr;
    if (initial_end) {
      object["metadata"]["annotations"].Entry("k8s.io/initial-events-end") = "true";
    }
    WriteEvent("BOOKMARK", std::make_shared<const api::Object>(object.Freeze()));
  }

  void ScheduleBookmark() {
    bookmark_ = loop_.RunAfter(kBookmarkInterval, [weak = weak_from_this()] {
      auto asking = weak.lock();
      if (asking == nullptr || asking->subscription_ == nullptr) return;
      asking->feed_.AskRevision([weak](storage::Revision revision) {
        auto self = weak.lock();
        if (self == nullptr || self->subscription_ == nullptr) return;
        // It would overtake the changes that wait.
        if (self->held_.empty()) self->WriteBookmark(revision, /*initial_end=*/false);
        self->ScheduleBookmark();
      });
    });
  }

  void Finish() {
    if (writer_ != nullptr) writer_->Finish();
    End();
  }

  void End() {
    subscription_.reset();
    timeout_.reset();
    bookmark_.reset();
    // Dropping the writer drops the callback that owns us; the caller holds us meanwhile.
    std::shared_ptr<net::ResponseWriter> writer = std::move(writer_);
    loop_.Post([writer = std::move(writer)] {});
  }

  EventLoop& loop_;
  ChangeFeed& feed_;
  WatchEvents& events_;
  WatchStreamOptions options_;  // the request went to the core
  const api::KindSchema& kind_;
  std::shared_ptr<net::ResponseWriter> writer_;  // null once ended
  Counter& sent_;
  std::unique_ptr<Subscription> subscription_;
  Core::WatchPlan plan_;
  std::shared_ptr<const DeviceUsage> usage_;  // as of the newest change
  bool sent_columns_ = false;
  struct Held {
    ChangeType type;
    api::ObjectPtr object;
  };
  std::deque<Held> held_;  // changes that wait for a webhook
  TimerHandle timeout_;
  TimerHandle bookmark_;
};

}  // namespace

void ServeWatch(EventLoop& loop, ChangeFeed& feed, WatchEvents& events, WatchStreamOptions options,
                std::shared_ptr<net::ResponseWriter> writer) {
  std::make_shared<WatchStream>(loop, feed, events, std::move(options), std::move(writer))->Start();
}

}  // namespace drakkar::apiserver

#include "apiserver/http/watch_stream.h"

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/conversion/skip_operations_form.h"
#include "apiserver/http/encode.h"
#include "base/text/text.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {
namespace {

// Kubernetes sends one about every minute; without changes a client still learns how far it is.
constexpr Duration kBookmarkInterval = std::chrono::seconds(60);

class WatchStream : public std::enable_shared_from_this<WatchStream> {
 public:
  WatchStream(Core& core, WatchEvents& events, WatchStreamOptions options,
              std::shared_ptr<net::ResponseWriter> writer)
      : core_(core),
        events_(events),
        options_(std::move(options)),
        writer_(std::move(writer)),
        sent_(events.Sent(*options_.request.kind)) {}

  void Start() {
    const bool list_first =
        options_.send_initial_events || options_.request.resource_version.empty() ||
        options_.request.resource_version == "0";
    if (!list_first) return StartWatch();
    // No version given: the state of now as ADDED events, then what follows.
    Request list = options_.request;
    list.verb = Verb::kList;
    list.limit = 0;
    list.continue_token.clear();
    list.resource_version.clear();
    list.resource_version_match.clear();
    core_.Handle(std::move(list), [self = shared_from_this()](Response response) {
      if (response.failure) return self->Refuse(*response.failure);
      self->core_.WhenDurable(response.revision, [self, response = std::move(response)] {
        self->options_.request.resource_version = std::to_string(response.revision);
        self->initial_ = response.items;
        self->initial_revision_ = response.revision;
        self->StartWatch();
      });
    });
  }

 private:
  void Refuse(const Failure& failure) {
    EncodedBody encoded = EncodeFailure(options_.negotiated, failure);
    writer_->Send(failure.code, {{"Content-Type", encoded.content_type}}, std::move(encoded.body));
  }

  void StartWatch() {
    Core::WatchStart start = core_.StartWatch(
        options_.request, storage::Mark::kDurable,
        [weak = weak_from_this()](const std::vector<Change>& changes) {
          if (auto self = weak.lock()) self->OnChanges(changes);
        });
    if (start.failure) return Refuse(*start.failure);
    watcher_ = std::move(start.watcher);
    writer_->StartStream(200, {{"Content-Type", std::string(WatchContentType(options_.negotiated))},
                               {"Cache-Control", "no-cache, private"}});
    started_ = true;
    // The stream owns itself until the response is over.
    writer_->OnClosed([self = shared_from_this()](bool) mutable { self->End(); });
    for (const api::ObjectPtr& object : initial_) WriteEvent("ADDED", object);
    initial_.clear();
    if (options_.send_initial_events && options_.bookmarks) {
      WriteBookmark(initial_revision_, /*initial_end=*/true);
    }
    std::vector<Change> early = std::move(early_);
    early_.clear();
    for (const Change& change : early) WriteChange(change);
    if (options_.timeout) {
      timeout_ = core_.loop().RunAfter(*options_.timeout, [weak = weak_from_this()] {
        if (auto self = weak.lock()) self->Finish();
      });
    }
    if (options_.bookmarks) ScheduleBookmark();
  }

  void OnChanges(const std::vector<Change>& changes) {
    // The backlog may come before StartWatch has returned.
    if (!started_) {
      early_.insert(early_.end(), changes.begin(), changes.end());
      return;
    }
    for (const Change& change : changes) WriteChange(change);
    if (writer_ != nullptr && writer_->pending_bytes() > kMaxPendingBytes) FallBehind();
  }

  // Nothing more is queued for a client that does not keep up but the event that tells it so; it
  // gets kExpiredGrace to read that far.
  void FallBehind() {
    watcher_.reset();
    timeout_.reset();
    bookmark_.reset();
    const Failure expired =
        api::StatusExpired("the watch fell too far behind and was closed; list and watch again");
    Negotiated plain = options_.negotiated;
    plain.shape = Shape::kObject;
    net::Body body;
    AppendEvent(plain, "ERROR", std::make_shared<const api::Object>(expired.ToTree()), body);
    for (net::Segment& segment : body) writer_->Write(std::move(segment));
    writer_->OnDrained([weak = weak_from_this()] {
      if (auto self = weak.lock()) self->Finish();
    });
    timeout_ = core_.loop().RunAfter(kExpiredGrace, [weak = weak_from_this()] {
      auto self = weak.lock();
      if (self == nullptr || self->writer_ == nullptr) return;
      self->writer_->Abort();
      self->End();
    });
  }

  void WriteChange(const Change& change) {
    switch (change.type) {
      case ChangeType::kAdded: return WriteEvent("ADDED", change.object);
      case ChangeType::kModified: return WriteEvent("MODIFIED", change.object);
      case ChangeType::kDeleted: return WriteEvent("DELETED", change.object);
      case ChangeType::kBookmark: return;
    }
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
    table.allocated_devices = options_.allocated_devices;
    sent_columns_ = true;
    for (const net::Segment& segment : events_.Table(options_.negotiated, type,
                                                     *options_.request.kind, object, table)) {
      writer_->Write(segment);
    }
  }

  void Write(std::string_view type, const api::ObjectPtr& object) {
    sent_.Add();
    net::Body body;
    AppendEvent(options_.negotiated, type, object, body);
    for (net::Segment& segment : body) writer_->Write(std::move(segment));
  }

  void WriteBookmark(storage::Revision revision, bool initial_end) {
    if (writer_ == nullptr || writer_->is_closed()) return;
    const api::KindSchema& kind = *options_.request.kind;
    api::Draft object = api::Draft::Object();
    object["kind"] = kind.kind;
    object["apiVersion"] = kind.group.empty() ? std::string(kind.version)
                                              : StrCat(kind.group, "/", kind.version);
    object["metadata"]["resourceVersion"] = std::to_string(revision);
    object["metadata"]["creationTimestamp"] = nullptr;
    if (initial_end) {
      object["metadata"]["annotations"]["k8s.io/initial-events-end"] = "true";
    }
    Write("BOOKMARK", std::make_shared<const api::Object>(object.Freeze()));
  }

  void ScheduleBookmark() {
    bookmark_ = core_.loop().RunAfter(kBookmarkInterval, [weak = weak_from_this()] {
      auto self = weak.lock();
      if (self == nullptr || self->watcher_ == nullptr) return;
      // Durable watchers have seen everything up to here.
      self->WriteBookmark(self->core_.durable_revision(), /*initial_end=*/false);
      self->ScheduleBookmark();
    });
  }

  void Finish() {
    if (writer_ != nullptr) writer_->Finish();
    End();
  }

  void End() {
    watcher_.reset();
    timeout_.reset();
    bookmark_.reset();
    // Dropping the writer drops the callback that owns us; the caller holds us meanwhile.
    std::shared_ptr<net::ResponseWriter> writer = std::move(writer_);
    core_.loop().Post([writer = std::move(writer)] {});
  }

  Core& core_;
  WatchEvents& events_;
  WatchStreamOptions options_;
  std::shared_ptr<net::ResponseWriter> writer_;
  Counter& sent_;
  std::unique_ptr<WatchCache::Watcher> watcher_;
  std::vector<api::ObjectPtr> initial_;  // the state of initial_revision_, to be sent first
  storage::Revision initial_revision_ = 0;
  std::vector<Change> early_;            // came before the answer was begun
  bool started_ = false;
  bool sent_columns_ = false;
  TimerHandle timeout_;
  TimerHandle bookmark_;
};

}  // namespace

void ServeWatch(Core& core, WatchEvents& events, WatchStreamOptions options,
                std::shared_ptr<net::ResponseWriter> writer) {
  std::make_shared<WatchStream>(core, events, std::move(options), std::move(writer))->Start();
}

}  // namespace drakkar::apiserver

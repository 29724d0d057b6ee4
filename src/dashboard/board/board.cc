#include "dashboard/board/board.h"

#include <algorithm>

#include "answers/render/why.h"
#include "answers/why/summary.h"
#include "api/meta/time.h"
#include "base/text/text.h"
#include "dashboard/board/replies.h"
#include "net/http/status.h"

namespace drakkar::dashboard {
namespace {

using answers::JsonOut;

Board::Reply ErrorReply(const Error& error) {
  JsonOut json(/*indented=*/false);
  json.BeginObject().Field("error", error.message).EndObject();
  return {net::HttpStatusOf(error.code), json.Take()};
}

Board::Reply ToReply(Result<std::string> result) {
  return result.ok() ? Board::Reply{200, std::move(*result)} : ErrorReply(result.error());
}

net::Segment ToMessage(std::string_view event, const std::string& json) {
  return net::MakeSegment(StrCat("event: ", event, "\ndata: ", json, "\n\n"));
}

}  // namespace

Board::Board(Options options, answers::Snapshot first)
    : options_(std::move(options)), history_(options_.random) {
  Build(std::move(first));
}

Board::~Board() = default;

void Board::Changed(bool urgent) {
  options_.loop.AssertInLoop();
  dirty_ = true;
  if (urgent && !urgent_) {
    urgent_ = true;
    timer_.reset();  // it may be set to a later time
  }
  Schedule();
}

void Board::SetProblem(std::string problem) {
  options_.loop.AssertInLoop();
  if (problem == problem_) return;
  problem_ = std::move(problem);
  Publish(view_->map);
}

void Board::SetViewers(std::size_t viewers) {
  options_.loop.AssertInLoop();
  const bool had_viewers = viewers_ > 0;
  viewers_ = viewers;
  if (had_viewers == (viewers > 0)) return;
  options_.source.SetWatched(viewers > 0);
  timer_.reset();
  if (dirty_) Schedule();
}

void Board::Schedule() {
  if (timer_ != nullptr || refreshing_) return;
  Duration pause = std::max<Duration>(kMinPause, cost_ * kPausePerCost);
  if (viewers_ == 0 || !urgent_) pause = std::max<Duration>(pause, kIdlePause);
  const Duration since = options_.loop.clock().Monotonic() - last_;
  timer_ = options_.loop.RunAfter(std::max(pause - since, Duration::zero()), [this] { Refresh(); });
}

void Board::Refresh() {
  timer_.reset();
  dirty_ = false;
  urgent_ = false;
  refreshing_ = true;
  options_.source.Take(lifetime_.Guard([this](answers::Snapshot snapshot) {
    refreshing_ = false;
    Build(std::move(snapshot));
    if (dirty_) Schedule();
  }));
}

void Board::Build(answers::Snapshot snapshot) {
  const MonotonicTime begin = options_.loop.clock().Monotonic();
  auto view = std::make_shared<View>();
  view->snapshot = std::move(snapshot);
  view->table = std::make_unique<const answers::DeviceTable>(
      view->snapshot, answers::DeviceTable::Options{.compiler = &options_.compiler});
  view->map = MakeMap(view->snapshot, *view->table);
  view->pending = answers::FindPending(view->snapshot);
  history_.Observe(view->snapshot, *view->table);
  options_.source.SetNodes(view->table->NodesToAsk());
  const std::shared_ptr<const View> before = std::exchange(view_, std::move(view));
  if (before != nullptr) Publish(before->map);
  last_ = options_.loop.clock().Monotonic();
  cost_ = last_ - begin;
}

void Board::Publish(const DeviceMap& before) {
  ++version_;
  full_ = nullptr;
  Update update{.version = version_};
  JsonOut json(/*indented=*/false);
  json.BeginObject();
  HeadToJson(json);
  if (ChangesToJson(json, before, view_->map)) {
    update.change = ToMessage("change", json.EndObject().Take());
  }
  options_.on_update(std::move(update));
}

void Board::HeadToJson(JsonOut& json) const {
  const View& view = *view_;
  std::vector<std::string> notes = view.snapshot.notes;
  notes.insert(notes.end(), view.table->notes().begin(), view.table->notes().end());
  const std::size_t unschedulable = static_cast<std::size_t>(
      std::count_if(view.pending.begin(), view.pending.end(), [](const answers::PendingPod& pod) {
        return pod.stage == answers::PendingPod::Stage::kUnschedulable;
      }));
  json.Field("version", version_)
      .Field("now", api::FormatTime(view.snapshot.now))
      .FieldIfAny("problem", problem_)
      .Texts("notes", notes)
      .Field("pending", view.pending.size())
      .Field("unschedulable", unschedulable)
      .Field("claims", view.snapshot.claims.size())
      .Field("nodes", view.snapshot.nodes.size())
      .FieldIfAny("namespace", view.snapshot.only_namespace);
}

Update Board::Full() {
  return {.version = version_, .change = full_message()};
}

const net::Segment& Board::full_message() {
  if (full_ == nullptr) {
    JsonOut json(/*indented=*/false);
    json.BeginObject().Field("server", options_.server);
    HeadToJson(json);
    MapToJson(json, view_->map);
    full_ = ToMessage("full", json.EndObject().Take());
  }
  return full_;
}

void Board::Ask(std::string_view path, std::string_view raw_query,
                std::function<void(Reply)> done) {
  options_.loop.AssertInLoop();
  const Result<net::Query> query = net::Query::Parse(raw_query);
  if (!query.ok()) return done(ErrorReply(query.error()));
  const View& view = *view_;
  if (path == "/api/device") return done(ToReply(DeviceReply(view, history_, *query)));
  if (path == "/api/pending") return done(ToReply(PendingReply(view, *query)));
  if (path == "/api/claims") return done(ToReply(ClaimsReply(view, *query)));
  if (path == "/api/claim") return AskClaim(*query, std::move(done));
  if (path == "/api/health") return done(ToReply(HealthReply(view, history_, *query)));
  if (path == "/api/scheduler") return done({200, SchedulerReply(view, history_)});
  if (path == "/api/free") return done(ToReply(FreeReply(view, *query)));
  if (path == "/api/why") return AskWhy(*query, std::move(done));
  done(ErrorReply(NotFound("there is no such page")));
}

void Board::AskWhy(const net::Query& query, std::function<void(Reply)> done) {
  Result<answers::WhySubject> subject = SubjectOf(query);
  if (!subject.ok()) return done(ErrorReply(subject.error()));
  options_.source.ReadCircumstances(
      *subject,
      lifetime_.Guard([this, subject = *subject, done = std::move(done)](Circumstances read) {
        if (!read.answer.empty()) return done({200, std::move(read.answer)});
        answers::Snapshot snapshot = view_->snapshot;
        snapshot.now = options_.loop.clock().Now();
        snapshot.events = std::move(read.events);
        for (std::string& note : read.notes) snapshot.notes.push_back(std::move(note));
        Result<answers::WhyAnswer> answer = answers::ExplainWhy(snapshot, subject,
                                                                {.loop = options_.loop,
                                                                 .random = options_.random,
                                                                 .compiler = options_.compiler,
                                                                 .settings = read.settings});
        if (!answer.ok()) return done(ErrorReply(answer.error()));
        answers::Summarize(*answer, snapshot.now);
        done({200, answers::WhyToJson(*answer)});
      }));
}

void Board::AskClaim(const net::Query& query, std::function<void(Reply)> done) {
  const std::string ns(query.Get("namespace"));
  const std::string name(query.Get("name"));
  if (FindClaim(*view_, ns, name) == nullptr) {
    return done(ErrorReply(NotFound(StrCat("there is no claim ", ns, "/", name, " any more"))));
  }
  options_.source.ReadEvents(
      ns, name, lifetime_.Guard([this, ns, name, done = std::move(done)](answers::Objects events) {
        const api::ObjectPtr claim = FindClaim(*view_, ns, name);
        if (claim == nullptr) {
          return done(
              ErrorReply(NotFound(StrCat("there is no claim ", ns, "/", name, " any more"))));
        }
        // Objects of other kinds may have the same name.
        std::erase_if(events, [](const api::ObjectPtr& event) {
          return (*event)["involvedObject"]["kind"].str() != "ResourceClaim";
        });
        done({200, ClaimReply(*view_, claim, std::move(events))});
      }));
}

}  // namespace drakkar::dashboard

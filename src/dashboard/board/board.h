#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "base/result/result.h"
#include "dashboard/board/view.h"
#include "dashboard/follow/follower.h"
#include "dashboard/model/history.h"
#include "net/http/message.h"
#include "net/http/url.h"

namespace drakkar::device {
class ExpressionCompiler;
}

namespace drakkar::dashboard {

// What the board requests from the follower, which lives on another loop. Answers arrive on the
// board's loop.
class Source {
 public:
  virtual ~Source() = default;
  virtual void Take(std::function<void(answers::Snapshot snapshot)> done) = 0;
  virtual void ReadCircumstances(answers::WhySubject subject,
                                 std::function<void(Circumstances)> done) = 0;
  virtual void ReadEvents(std::string ns, std::string name,
                          std::function<void(answers::Objects)> done) = 0;
  virtual void SetNodes(std::vector<std::string> nodes) = 0;
  virtual void SetWatched(bool watched) = 0;
};

// A message for the page's stream.
struct Update {
  std::uint64_t version = 0;
  net::Segment change;  // from version - 1 to version; null: send the whole state
};

// Computes what the page shows, with the code of `src/answers`. Lives on its own loop, because a
// large cluster takes a second. Changes are collected: it recomputes when the last result is older
// than kMinPause and than several times its computing time.
class Board {
 public:
  static constexpr Duration kMinPause = std::chrono::milliseconds(250);
  static constexpr int kPausePerCost = 4;  // uses at most a fifth of a processor
  // Between refreshes if no page is open, or if only leases changed: for the history.
  static constexpr Duration kIdlePause = std::chrono::seconds(15);

  struct Options {
    EventLoop& loop;
    Random& random;
    device::ExpressionCompiler& compiler;
    Source& source;
    std::string server;                     // the API server's address, for the page's title
    std::function<void(Update)> on_update;  // runs on the loop
  };
  Board(Options options, answers::Snapshot first);
  ~Board();

  void Changed(bool urgent);
  // Why the snapshot is not current; empty if it is. Published at once, without computing.
  void SetProblem(std::string problem);
  void SetViewers(std::size_t viewers);
  // The whole state as a stream message.
  Update Full();
  const net::Segment& full_message();

  struct Reply {
    int status = 200;
    std::string json;
  };
  // Answers `path` ("/api/claims") with its query; `done` runs on the loop, possibly inside.
  void Ask(std::string_view path, std::string_view raw_query, std::function<void(Reply)> done);

 private:
  void Schedule();
  void Refresh();
  void Build(answers::Snapshot snapshot);
  void Publish(const DeviceMap& before);
  void HeadToJson(answers::JsonOut& json) const;
  void AskWhy(const net::Query& query, std::function<void(Reply)> done);
  void AskClaim(const net::Query& query, std::function<void(Reply)> done);

  const Options options_;
  History history_;
  std::shared_ptr<const View> view_;
  std::uint64_t version_ = 1;  // of what was published
  std::string problem_;
  net::Segment full_;  // of the version; null until somebody needs it
  std::size_t viewers_ = 0;
  bool dirty_ = false;
  bool urgent_ = false;
  bool refreshing_ = false;
  Duration cost_{};
  MonotonicTime last_{};
  TimerHandle timer_;
  Lifetime lifetime_;
};

}  // namespace drakkar::dashboard

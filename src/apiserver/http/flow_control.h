#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "apiserver/request/request.h"

namespace drakkar::apiserver {

// Shares an API server among its users: each may have a limited number of requests in progress;
// further ones wait in the user's own queue, and are rejected when it is full. A part of the server
// is reserved for the cluster's own components. Watches and streams do not count once they have
// started.
//
// Bound to one HTTP loop; limits are for that loop. Owned by a shared_ptr.
class FlowControl : public std::enable_shared_from_this<FlowControl> {
 public:
  enum class Level {
    kExempt,  // system:masters: never waits
    kSystem,  // nodes, scheduler, controllers: may use the reserve
    kOther,
  };
  // Level of an authenticated user.
  static Level LevelOf(const UserInfo& user);

  struct Limits {
    std::size_t in_progress = 0;      // of all users that are not exempt
    std::size_t per_user = 0;         // of them, one user's
    std::size_t reserved = 0;         // of them, for kSystem
    std::size_t queued_per_user = 0;  // beyond: rejected
    std::size_t queued = 0;           // of all users
  };
  // `in_progress` requests, with the other limits in proportion.
  static Limits LimitsFor(std::size_t in_progress);

  explicit FlowControl(Limits limits) : limits_(limits) {}

  // A place among the requests in progress; destroying it lets the next one start.
  class Ticket {
   public:
    Ticket() = default;
    ~Ticket() { Release(); }
    Ticket(Ticket&& other) noexcept { *this = std::move(other); }
    Ticket& operator=(Ticket&& other) noexcept;
    void Release();

   private:
    friend class FlowControl;
    std::weak_ptr<FlowControl> control_;  // a request may outlive it
    std::string user_;
    Level level_ = Level::kExempt;
  };

  // Starts a request by calling `start`: at once, or when it is its turn. Returns false, without
  // taking `start`, if the user has too many waiting.
  using Start = std::function<void(Ticket)>;
  [[nodiscard]] bool Enter(const std::string& user, Level level, Start start);

  std::size_t in_progress() const { return in_progress_; }
  std::size_t queued() const { return queued_; }

 private:
  struct Flow {
    std::size_t in_progress = 0;
    bool is_waiting = false;  // it is in `turns_`
    Level level = Level::kOther;
    std::deque<Start> queue;
  };

  bool MayStart(const Flow& flow, Level level) const;
  Ticket Begin(const std::string& user, Flow& flow, Level level);
  void End(const std::string& user, Level level);
  void StartWaiting();

  const Limits limits_;
  std::size_t in_progress_ = 0;
  std::size_t others_in_progress_ = 0;  // of kOther
  std::size_t queued_ = 0;
  bool is_starting_ = false;
  std::unordered_map<std::string, Flow> flows_;  // users with requests in progress or waiting
  std::deque<std::string> turns_;                // users with waiting requests, next one first
};

}  // namespace drakkar::apiserver

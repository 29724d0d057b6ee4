#pragma once

#include <map>
#include <memory>
#include <string>

namespace drakkar::apiserver {

// Counts the requests of one HTTP loop that wait for other servers, so that neither a server that
// hangs nor a greedy user takes the room of the others.
class OpenRequests {
 public:
  struct Limits {
    std::size_t in_all = 0;
    std::size_t per_target = 0;
    std::size_t per_user = 0;
  };
  explicit OpenRequests(Limits limits) : limits_(limits) {}

  // A place, to be kept while the request is open; null: there is none.
  std::shared_ptr<const void> Enter(const std::string& target, const std::string& user);
  std::size_t count() const { return *in_all_; }

 private:
  using Count = std::shared_ptr<std::size_t>;
  struct Place;
  static Count CountOf(std::map<std::string, Count>& counts, const std::string& key);

  const Limits limits_;
  const Count in_all_ = std::make_shared<std::size_t>(0);
  // Entries with 0 are dropped when these grow.
  std::map<std::string, Count> by_target_;
  std::map<std::string, Count> by_user_;
};

}  // namespace drakkar::apiserver

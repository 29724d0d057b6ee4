#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/exec/event_loop.h"
#include "client/client.h"

namespace drakkar::client {

// Decides by the API server who may see a component's own pages, as Kubernetes' components delegate
// it: a bearer token is resolved by a TokenReview, and a SubjectAccessReview says whether that user
// (or the one of a client certificate, or nobody) may get the path. Answers are kept for kKept.
//
// Loop-bound. At most kMaxKept answers of each kind are kept; past that all are dropped.
class AccessReviewer {
 public:
  static constexpr Duration kKept = std::chrono::seconds(10);
  static constexpr std::size_t kMaxKept = 1'024;

  struct User {
    std::string name;
    std::vector<std::string> groups;
  };
  // Of a refused request: the HTTP status and a sentence.
  struct Refusal {
    int status = 0;
    std::string reason;
  };
  using Done = std::function<void(std::optional<Refusal>)>;  // nothing: allowed

  // `client` must be allowed to create both kinds of reviews.
  AccessReviewer(EventLoop& loop, Client& client) : loop_(loop), client_(client) {}
  ~AccessReviewer() { *alive_ = false; }
  AccessReviewer(const AccessReviewer&) = delete;
  AccessReviewer& operator=(const AccessReviewer&) = delete;

  // `certificate` is who a verified client certificate names; without one the token counts, and
  // without either the caller is system:anonymous. `done` may run before this returns, and does not
  // run any more once the reviewer is gone.
  void Review(const std::optional<User>& certificate, std::string token, std::string path,
              Done done);

 private:
  template <typename T>
  struct Kept {
    T answer;
    MonotonicTime until{};
  };

  void ReviewToken(std::string token, std::string path, Done done);
  void ReviewAccess(User user, std::string path, Done done);
  // Null if there is none that still counts.
  template <typename T>
  const T* Find(const std::map<std::string, Kept<T>>& kept, const std::string& id) const;
  template <typename T>
  void Keep(std::map<std::string, Kept<T>>& kept, std::string id, T answer);

  EventLoop& loop_;
  Client& client_;
  std::map<std::string, Kept<std::optional<User>>>
      tokens_;                                   // by the token's hash; nothing: not valid
  std::map<std::string, Kept<bool>> decisions_;  // by user, groups and path
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace drakkar::client

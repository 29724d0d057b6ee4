#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "net/server/http_server.h"

namespace drakkar::client {

// Decides by the API server who may use a component's own port, as Kubernetes' components delegate
// it: a bearer token is resolved by a TokenReview, and a SubjectAccessReview says whether that user
// (or the one of a client certificate, or nobody) may do what was asked. Answers are kept for
// kKept.
//
// Loop-bound. At most kMaxKept answers of each kind are kept; past that all are dropped.
class AccessReviewer {
 public:
  static constexpr Duration kKept = std::chrono::seconds(10);
  static constexpr std::size_t kMaxKept = 1'024;
  // Longer ones are no tokens, and are not sent on.
  static constexpr std::size_t kMaxTokenBytes = 16 * 1024;

  struct User {
    std::string name;
    std::vector<std::string> groups;
    std::string uid = {};
    std::map<std::string, std::vector<std::string>> extra = {};
  };
  // What a request says about who sent it.
  struct Credentials {
    std::optional<User> certificate;  // who a verified client certificate names
    std::string token;
    bool invalid = false;  // a certificate that does not verify, or an unknown kind of login
  };
  static Credentials CredentialsOf(const net::ServerRequest& request);

  // A path that is no resource, or, with an empty path, something of a node: its name and a
  // subresource such as "metrics".
  struct Access {
    std::string verb = "get";
    std::string path = {};
    std::string node = {};
    std::string subresource = {};
  };
  // Of a refused request: the HTTP status and a sentence.
  struct Refusal {
    int status = 0;
    std::string reason;
  };
  using Done = std::function<void(std::optional<Refusal>)>;  // nothing: allowed

  enum class Nobody { kIsAnonymous, kIsRefused };

  // `client` must be allowed to create both kinds of reviews. Who brings no credentials is
  // system:anonymous, whose rights are asked for, or is refused at once.
  AccessReviewer(EventLoop& loop, Client& client, Nobody nobody = Nobody::kIsAnonymous)
      : loop_(loop), client_(client), nobody_(nobody) {}
  AccessReviewer(const AccessReviewer&) = delete;
  AccessReviewer& operator=(const AccessReviewer&) = delete;

  // Whether the caller may do one of `any_of`, which must not be empty. A certificate counts before
  // a token. `done` may run before this returns, and does not run any more once the reviewer is
  // gone.
  void Review(Credentials credentials, std::vector<Access> any_of, Done done);

 private:
  template <typename T>
  struct Kept {
    T answer;
    MonotonicTime until{};
  };
  // A question under way: the accesses from `next` on have not been asked about.
  struct Question {
    User user;
    std::vector<Access> any_of;
    std::size_t next = 0;
    Done done;
  };

  void ReviewToken(std::string token, std::vector<Access> any_of, Done done);
  void ReviewAccess(User user, std::vector<Access> any_of, Done done);
  void Ask(Question question);
  // Null if there is none that still counts.
  template <typename T>
  const T* Find(const std::map<std::string, Kept<T>>& kept, const std::string& id) const;
  template <typename T>
  void Keep(std::map<std::string, Kept<T>>& kept, std::string id, T answer);

  EventLoop& loop_;
  Client& client_;
  const Nobody nobody_;
  std::map<std::string, Kept<std::optional<User>>>
      tokens_;                                   // by the token's hash; nothing: not valid
  std::map<std::string, Kept<bool>> decisions_;  // by a hash of user and access
  Lifetime lifetime_;
};

}  // namespace drakkar::client

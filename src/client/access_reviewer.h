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

// Asks the API server who may use a component's own port, as Kubernetes components do: a
// TokenReview resolves a bearer token, and a SubjectAccessReview decides whether that user (or the
// one named by a client certificate, or system:anonymous) may do what it asked for. Answers are
// cached for kKept.
//
// Loop-bound. Caches at most kMaxKept answers of each kind; beyond that it drops them all.
class AccessReviewer {
 public:
  static constexpr Duration kKept = std::chrono::seconds(10);
  static constexpr std::size_t kMaxKept = 1'024;
  // A longer credential is not a token and is not sent to the server.
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
    bool invalid = false;  // the certificate does not verify, or the scheme is unknown
  };
  static Credentials CredentialsOf(const net::ServerRequest& request);

  // A non-resource path or, if the path is empty, a core resource: a subresource of a node such as
  // "metrics", or the objects of a namespace.
  struct Access {
    std::string verb = "get";
    std::string path = {};
    std::string node = {};  // its name
    std::string subresource = {};
    std::string resource = "nodes";
    std::string namespace_ = {};
  };
  // The HTTP status and the message for a denied request.
  struct Refusal {
    int status = 0;
    std::string reason;
  };
  using Done = std::function<void(std::optional<Refusal>)>;  // nothing: allowed

  enum class Nobody { kIsAnonymous, kIsRefused };

  // `client` must be allowed to create both kinds of reviews. `nobody` decides what happens to a
  // caller without credentials: it is reviewed as system:anonymous, or denied at once.
  AccessReviewer(EventLoop& loop, Client& client, Nobody nobody = Nobody::kIsAnonymous)
      : loop_(loop), client_(client), nobody_(nobody) {}
  AccessReviewer(const AccessReviewer&) = delete;
  AccessReviewer& operator=(const AccessReviewer&) = delete;

  // Reviews whether the caller may do one of `any_of`, which must not be empty. A certificate takes
  // precedence over a token. `done` may run before this returns; it does not run after the reviewer
  // is destroyed.
  void Review(Credentials credentials, std::vector<Access> any_of, Done done);
  // The same for a user whom somebody else has authenticated.
  void ReviewUser(User user, std::vector<Access> any_of, Done done) {
    ReviewAccess(std::move(user), std::move(any_of), std::move(done));
  }

 private:
  template <typename T>
  struct Kept {
    T answer;
    MonotonicTime until{};
  };
  // A review in flight; accesses from `next` on have not been reviewed yet.
  struct Question {
    User user;
    std::vector<Access> any_of;
    std::size_t next = 0;
    Done done;
  };

  void ReviewToken(std::string token, std::vector<Access> any_of, Done done);
  void ReviewAccess(User user, std::vector<Access> any_of, Done done);
  void Ask(Question question);
  // Null if there is none or it has expired.
  template <typename T>
  const T* Find(const std::map<std::string, Kept<T>>& kept, const std::string& id) const;
  template <typename T>
  void Keep(std::map<std::string, Kept<T>>& kept, std::string id, T answer);

  EventLoop& loop_;
  Client& client_;
  const Nobody nobody_;
  std::map<std::string, Kept<std::optional<User>>>
      tokens_;                                   // by the token's hash; nothing: invalid
  std::map<std::string, Kept<bool>> decisions_;  // by a hash of user and access
  Lifetime lifetime_;
};

}  // namespace drakkar::client

#include "client/access_reviewer.h"

#include <algorithm>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/hash/sha256.h"
#include "base/text/text.h"

namespace drakkar::client {
namespace {

// Whoever is in it may do everything, whatever the server says or whether it answers.
constexpr std::string_view kMasters = "system:masters";

AccessReviewer::Refusal Unauthorized() {
  return {401, "Unauthorized"};
}

AccessReviewer::Refusal Unanswered(const Error& error) {
  return {500, StrCat("who may see this page cannot be found out: ", error.message)};
}

AccessReviewer::User UserIn(api::Value user) {
  AccessReviewer::User read{std::string(user["username"].str()), {}};
  for (api::Value group : user["groups"].elements()) read.groups.emplace_back(group.str());
  return read;
}

}  // namespace

template <typename T>
const T* AccessReviewer::Find(const std::map<std::string, Kept<T>>& kept,
                              const std::string& id) const {
  const auto found = kept.find(id);
  if (found == kept.end() || found->second.until <= loop_.clock().Monotonic()) return nullptr;
  return &found->second.answer;
}

template <typename T>
void AccessReviewer::Keep(std::map<std::string, Kept<T>>& kept, std::string id, T answer) {
  if (kept.size() >= kMaxKept) kept.clear();
  kept.insert_or_assign(std::move(id),
                        Kept<T>{std::move(answer), loop_.clock().Monotonic() + kKept});
}

void AccessReviewer::Review(const std::optional<User>& certificate, std::string token,
                            std::string path, Done done) {
  if (certificate) {
    User user = *certificate;
    user.groups.emplace_back("system:authenticated");
    return ReviewAccess(std::move(user), std::move(path), std::move(done));
  }
  if (!token.empty()) return ReviewToken(std::move(token), std::move(path), std::move(done));
  ReviewAccess({"system:anonymous", {"system:unauthenticated"}}, std::move(path), std::move(done));
}

void AccessReviewer::ReviewToken(std::string token, std::string path, Done done) {
  std::string id = Sha256Hex(token);  // the token itself is kept nowhere
  if (const std::optional<User>* user = Find(tokens_, id)) {
    if (!*user) return done(Unauthorized());
    return ReviewAccess(**user, std::move(path), std::move(done));
  }
  const api::KindSchema* kind = api::FindKind("authentication.k8s.io", "v1", "TokenReview");
  api::Draft review{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenReview"}};
  review["spec"]["token"] = token;
  client_.Create({kind, "", "", ""}, review.Freeze(), {},
                 [this, alive = alive_, id = std::move(id), path = std::move(path),
                  done = std::move(done)](Reply reply) mutable {
                   if (!*alive) return;
                   if (!reply.ok()) return done(Unanswered(*reply.error));
                   const api::Value status = reply.object->root()["status"];
                   std::optional<User> user;
                   if (status["authenticated"].boolean()) user = UserIn(status["user"]);
                   Keep(tokens_, std::move(id), user);
                   if (!user) return done(Unauthorized());
                   ReviewAccess(std::move(*user), std::move(path), std::move(done));
                 });
}

void AccessReviewer::ReviewAccess(User user, std::string path, Done done) {
  if (std::find(user.groups.begin(), user.groups.end(), kMasters) != user.groups.end()) {
    return done(std::nullopt);
  }
  const auto refusal = [](const std::string& name, const std::string& page) {
    return Refusal{403, StrCat("forbidden: User ", Quote(name), " cannot get path ", Quote(page))};
  };
  std::string id = StrCat(user.name, "\n", path);
  for (const std::string& group : user.groups) id += StrCat("\n", group);
  if (const bool* allowed = Find(decisions_, id)) {
    return done(*allowed ? std::nullopt : std::optional(refusal(user.name, path)));
  }
  const api::KindSchema* kind = api::FindKind("authorization.k8s.io", "v1", "SubjectAccessReview");
  api::Draft review{{"apiVersion", "authorization.k8s.io/v1"}, {"kind", "SubjectAccessReview"}};
  review["spec"]["user"] = user.name;
  for (const std::string& group : user.groups) review["spec"]["groups"].Append(group);
  review["spec"]["nonResourceAttributes"]["path"] = path;
  review["spec"]["nonResourceAttributes"]["verb"] = "get";
  client_.Create({kind, "", "", ""}, review.Freeze(), {},
                 [this, alive = alive_, id = std::move(id), name = user.name,
                  path = std::move(path), refusal, done = std::move(done)](Reply reply) mutable {
                   if (!*alive) return;
                   if (!reply.ok()) return done(Unanswered(*reply.error));
                   const bool allowed = reply.object->root()["status"]["allowed"].boolean();
                   Keep(decisions_, std::move(id), allowed);
                   done(allowed ? std::nullopt : std::optional(refusal(name, path)));
                 });
}

}  // namespace drakkar::client

#include "controllers/bootstrap/signer.h"

#include <map>
#include <optional>

#include "api/tree/draft.h"
#include "base/text/text.h"
#include "bootstrap/cluster_info.h"

namespace drakkar::controllers {
namespace {

std::string InfoKey() {
  return StrCat(bootstrap::kInfoNamespace, "/", bootstrap::kInfoName);
}

}  // namespace

api::TreePtr PlanSignatures(const api::Object& info, const std::vector<bootstrap::Token>& tokens) {
  const api::Value data = info["data"];
  const api::Value content = data.Entry(bootstrap::kInfoKubeconfig);
  if (!content.has_value()) return nullptr;
  std::map<std::string, std::string> wanted;
  for (const bootstrap::Token& token : tokens) {
    wanted.emplace(StrCat(bootstrap::kInfoSignaturePrefix, token.id),
                   bootstrap::DetachedSignature(content.str(), token));
  }
  api::Draft draft(info.tree());
  bool changed = false;
  for (const api::MemberView& each : data.members()) {
    if (!each.name.starts_with(bootstrap::kInfoSignaturePrefix)) continue;
    const auto found = wanted.find(std::string(each.name));
    if (found == wanted.end()) {
      changed = draft["data"].RemoveEntry(each.name) || changed;
    } else if (found->second == each.value.str()) {
      wanted.erase(found);
    }
  }
  for (const auto& [key, signature] : wanted) draft["data"].Entry(key) = signature;
  return changed || !wanted.empty() ? draft.Freeze() : nullptr;
}

BootstrapSigner::BootstrapSigner(Options options)
    : options_(options),
      client_(options.client),
      queue_(options.loop, options.random, {"bootstrapsigner"},
             [this](const std::string& name, Done done) { Sync(name, std::move(done)); }) {
  const auto changed = [this] { queue_.Add(InfoKey()); };
  for (client::Informer* informer : {&options_.info, &options_.secrets}) {
    informer->AddHandlers(
        {.on_add = [changed](const api::ObjectPtr&) { changed(); },
         .on_update = [changed](const api::ObjectPtr&, const api::ObjectPtr&) { changed(); },
         .on_delete = [changed](const api::ObjectPtr&) { changed(); }});
    informer->OnSynced(changed);
  }
}

void BootstrapSigner::Sync(const std::string& key, Done done) {
  const api::ObjectPtr info = options_.info.Find(key);
  if (info == nullptr || !options_.secrets.has_synced()) return done(Ok());
  const WallTime now = options_.loop.clock().Now();
  std::vector<bootstrap::Token> tokens;
  std::optional<WallTime> next_expiry;
  for (const auto& [name, secret] : options_.secrets.objects()) {
    const Result<bootstrap::TokenRecord> record = bootstrap::ReadTokenSecret(secret->root());
    if (!record.ok() || !record->signs || secret->is_being_deleted() || record->HasExpired(now)) {
      continue;
    }
    if (tokens.size() == kMaxSignatures) break;
    tokens.push_back(record->token);
    if (record->expires && (!next_expiry || *record->expires < *next_expiry)) {
      next_expiry = record->expires;
    }
  }
  const api::TreePtr body = PlanSignatures(*info, tokens);
  if (body == nullptr) {
    done(Ok());
    // An expired token must not sign, even if nobody deletes it.
    if (next_expiry) queue_.AddAfter(key, *next_expiry - now);
    return;
  }
  client_.Update(
      {&options_.info.kind(), std::string(info->namespace_()), std::string(info->name()), ""}, body,
      {}, [done = std::move(done)](client::Reply reply) {
        const bool over = reply.ok() || reply.error->code == ErrorCode::kNotFound;
        done(over ? Ok() : Result<void>(*reply.error));
      });
}

}  // namespace drakkar::controllers

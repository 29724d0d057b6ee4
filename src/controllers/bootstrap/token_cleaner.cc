#include "controllers/bootstrap/token_cleaner.h"

#include "bootstrap/token.h"

namespace drakkar::controllers {

TokenCleaner::TokenCleaner(Options options)
    : options_(options),
      client_(options.client),
      queue_(options.loop, options.random, {"tokencleaner"},
             [this](const std::string& name, Done done) { Sync(name, std::move(done)); }) {
  options_.secrets.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& secret) { queue_.Add(secret->qualified_name()); },
       .on_update = [this](const api::ObjectPtr&,
                           const api::ObjectPtr& after) { queue_.Add(after->qualified_name()); }});
}

void TokenCleaner::Sync(const std::string& name, Done done) {
  const api::ObjectPtr secret = options_.secrets.Find(name);
  if (secret == nullptr || secret->is_being_deleted()) return done(Ok());
  const Result<bootstrap::TokenRecord> record = bootstrap::ReadTokenSecret(secret->root());
  // A Secret that is not a valid token authenticates nobody; its author may still correct it.
  if (!record.ok() || !record->expires) return done(Ok());
  const WallTime now = options_.loop.clock().Now();
  if (*record->expires > now) {
    done(Ok());
    return queue_.AddAfter(name, *record->expires - now);
  }
  // The resourceVersion is a precondition: a token that was just extended is kept.
  client_.Delete({&options_.secrets.kind(), std::string(secret->namespace_()),
                  std::string(secret->name()), ""},
                 {.precondition_uid = std::string(secret->uid()),
                  .precondition_resource_version = std::to_string(secret->resource_version())},
                 [done = std::move(done)](client::Reply reply) {
                   const bool over = reply.ok() || reply.error->code == ErrorCode::kNotFound;
                   done(over ? Ok() : Result<void>(*reply.error));
                 });
}

}  // namespace drakkar::controllers

#include "controllers/certificates/cleaner.h"

#include "controllers/certificates/planner.h"

namespace drakkar::controllers {

CertificateCleaner::CertificateCleaner(Options options)
    : options_(options),
      client_(options.client),
      queue_(options.loop, options.random, {"csrcleaner"},
             [this](const std::string& name, Done done) { Sync(name, std::move(done)); }) {
  options_.requests.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& request) { queue_.Add(request->qualified_name()); },
       .on_update = [this](const api::ObjectPtr&,
                           const api::ObjectPtr& after) { queue_.Add(after->qualified_name()); }});
}

void CertificateCleaner::Sync(const std::string& name, Done done) {
  const api::ObjectPtr request = options_.requests.Find(name);
  const std::optional<WallTime> due = request == nullptr ? std::nullopt : DeletionTime(*request);
  if (!due || request->is_being_deleted()) return done(Ok());
  const WallTime now = options_.loop.clock().Now();
  if (*due > now) {
    done(Ok());
    return queue_.AddAfter(name, *due - now);
  }
  client_.Delete({&options_.requests.kind(), "", name, ""},
                 {.precondition_uid = std::string(request->uid()),
                  .precondition_resource_version = std::to_string(request->resource_version())},
                 [done = std::move(done)](client::Reply reply) {
                   const bool over = reply.ok() || reply.error->code == ErrorCode::kNotFound;
                   done(over ? Ok() : Result<void>(*reply.error));
                 });
}

}  // namespace drakkar::controllers

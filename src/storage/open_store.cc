#include "storage/open_store.h"

#include <string_view>

#include "base/env/file_system.h"
#include "base/env/random.h"
#include "net/tls/tls.h"
#include "storage/etcd/etcd_store.h"
#include "storage/sqlite/sqlite_store.h"

namespace drakkar::storage {
namespace {

using OpenEngine = Result<std::unique_ptr<Store>> (*)(UvLoop& loop, const StoreLocation& location);

Result<std::unique_ptr<Store>> OpenSqlite(UvLoop& loop, const StoreLocation& location) {
  return OpenSqliteStore(loop, {.directory = location.directory});
}

Result<std::string> ReadOptional(const std::string& path) {
  if (path.empty()) return std::string();
  Result<std::string> text = RealFileSystem().ReadFile(path);
  if (!text.ok()) return text.error().Prefixed("TLS to etcd");
  return text;
}

Result<std::unique_ptr<Store>> OpenEtcd(UvLoop& loop, const StoreLocation& location) {
  net::TlsClientOptions tls;
  ASSIGN_OR_RETURN(tls.ca_pem, ReadOptional(location.etcd_ca_file));
  ASSIGN_OR_RETURN(tls.certificate_pem, ReadOptional(location.etcd_certificate_file));
  ASSIGN_OR_RETURN(tls.key_pem, ReadOptional(location.etcd_key_file));
  if (tls.certificate_pem.empty() != tls.key_pem.empty()) {
    return InvalidArgument("a client certificate for etcd and its key must be given together");
  }
  const bool has_tls = !tls.ca_pem.empty() || !tls.certificate_pem.empty();
  EtcdStoreOptions options;
  ASSIGN_OR_RETURN(options.client.endpoints, ParseEtcdEndpoints(location.etcd_servers, has_tls));
  Result<std::shared_ptr<const net::TlsContext>> context = net::TlsContext::Client(tls);
  if (!context.ok()) return context.error().Prefixed("TLS to etcd");
  options.client.tls = *std::move(context);
  options.compaction_interval = location.etcd_compaction_interval;
  return OpenEtcdStore(loop, RealRandom(), rpc::MakeGrpcTransport(loop), std::move(options));
}

constexpr struct {
  std::string_view name;
  OpenEngine open;
} kEngines[] = {
    {"sqlite", OpenSqlite},
    {"etcd", OpenEtcd},
};

}  // namespace

Result<std::unique_ptr<Store>> OpenStore(UvLoop& loop, const StoreLocation& location) {
  std::string names;
  for (const auto& engine : kEngines) {
    if (engine.name == location.engine) return engine.open(loop, location);
    if (!names.empty()) names += ", ";
    names += engine.name;
  }
  return InvalidArgument("there is no store engine \"" + location.engine +
                         "\"; use one of: " + names);
}

}  // namespace drakkar::storage

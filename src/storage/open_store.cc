#include "storage/open_store.h"

#include <string_view>

#include "storage/sqlite/sqlite_store.h"

namespace drakkar::storage {
namespace {

using OpenEngine = Result<std::unique_ptr<Store>> (*)(EventLoop& loop,
                                                      const StoreLocation& location);

Result<std::unique_ptr<Store>> OpenSqlite(EventLoop& loop, const StoreLocation& location) {
  return OpenSqliteStore(loop, {.directory = location.directory});
}

constexpr struct {
  std::string_view name;
  OpenEngine open;
} kEngines[] = {
    {"sqlite", OpenSqlite},
};

}  // namespace

Result<std::unique_ptr<Store>> OpenStore(EventLoop& loop, const StoreLocation& location) {
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

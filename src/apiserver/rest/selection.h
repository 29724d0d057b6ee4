#pragma once

#include <optional>
#include <string>

#include "apiserver/request/request.h"
#include "apiserver/watch/watch_cache.h"

namespace drakkar::apiserver {

// The predicate for the request's label and field selectors; empty if everything is selected.
std::optional<Failure> BuildSelection(const Request& request, Selection& selection);

// 0 for "" and "0".
std::optional<Failure> ParseResourceVersion(const std::string& text, storage::Revision& revision);

// Where a list continues: after `last_key`, in the state at `revision`.
struct ContinueToken {
  // Continue with the current state: used if the list's own state has been compacted.
  static constexpr storage::Revision kNewest = -1;
  storage::Revision revision = 0;
  std::string last_key;
};
std::string EncodeContinue(const ContinueToken& token);
std::optional<Failure> DecodeContinue(const std::string& text, ContinueToken& token);

}  // namespace drakkar::apiserver

#pragma once

#include <optional>
#include <string>

#include "apiserver/request/request.h"
#include "apiserver/watch/watch_cache.h"

namespace drakkar::apiserver {

// The predicate of the request's label and field selectors; empty when everything is selected.
std::optional<Failure> BuildSelection(const Request& request, Selection& selection);

// "" and "0" give 0.
std::optional<Failure> ParseResourceVersion(const std::string& text, storage::Revision& revision);

// Where a list continues: behind `last_key`, in the state of `revision`.
struct ContinueToken {
  // Goes on with the state of now: given out where the list's own state is compacted.
  static constexpr storage::Revision kNewest = -1;
  storage::Revision revision = 0;
  std::string last_key;
};
std::string EncodeContinue(const ContinueToken& token);
std::optional<Failure> DecodeContinue(const std::string& text, ContinueToken& token);

}  // namespace drakkar::apiserver

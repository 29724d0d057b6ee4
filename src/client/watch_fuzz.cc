// Arbitrary responses to a watch and to discovery. Parsing them at once or byte by byte gives the
// same events and the same end.
#include <cstddef>
#include <cstdint>

#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "base/result/check.h"
#include "client/discovery.h"
#include "client/watch_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  client::WatchReader whole, split;
  std::vector<client::WatchEvent> at_once, one_by_one;
  const auto end = whole.Read(text, at_once);
  std::optional<Error> end_of_split;
  for (std::size_t i = 0; i < size && !end_of_split; ++i)
    end_of_split = split.Read(text.substr(i, 1), one_by_one);
  CHECK(end.has_value() == end_of_split.has_value());
  if (end) CHECK(end->code == end_of_split->code && end->message == end_of_split->message);
  CHECK(at_once.size() == one_by_one.size());
  for (std::size_t i = 0; i < at_once.size(); ++i) {
    CHECK(at_once[i].type == one_by_one[i].type &&
          *at_once[i].object->json() == *one_by_one[i].object->json());
  }
  if (const auto tree = api::ParseJson(text); tree.ok()) {
    client::KindCatalog catalog;
    client::ServedKinds served;
    static_cast<void>(catalog.Read((*tree)->root(), served).ok());
    for (const api::KindSchema* kind : served.kinds)
      CHECK(!kind->plural.empty() && !kind->version.empty());
  }
  return 0;
}

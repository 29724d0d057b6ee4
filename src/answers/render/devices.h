#pragma once

#include <string>

#include "answers/free/fits.h"
#include "answers/free/free.h"
#include "answers/who/who.h"
#include "base/env/clock.h"

namespace drakkar::answers {

struct RenderOptions {
  std::size_t width = 80;  // 0: no limit
  bool wide = false;       // more columns
  bool headers = true;
  WallTime now{};
};

// Renders answers about devices as text for people. Notes come first, one per line.
std::string RenderFree(const FreeAnswer& answer, const RenderOptions& options);
std::string RenderFits(const FitsAnswer& answer, const RenderOptions& options);
std::string RenderWho(const WhoAnswer& answer, const RenderOptions& options);
std::string RenderHolderGroups(const std::vector<HolderGroup>& groups, const HolderGrouping& by,
                               const RenderOptions& options);

// The same as JSON: an object.
std::string FreeToJson(const FreeAnswer& answer);
std::string FitsToJson(const FitsAnswer& answer);
std::string WhoToJson(const WhoAnswer& answer);
std::string HolderGroupsToJson(const std::vector<HolderGroup>& groups, const HolderGrouping& by);

// "note: ..." for each.
std::string RenderNotes(const std::vector<std::string>& notes, std::size_t width);
// "3h12m", or "<unknown>".
std::string AgeText(const std::string& since, WallTime now);

}  // namespace drakkar::answers

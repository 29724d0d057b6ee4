// Made by tools/apigen from schema/.
#pragma once

#include <cstddef>

#include "api/tree/key.h"

namespace drakkar::api::generated {

// Entry 0 is no name; the others are sorted. Only the compiler reads the texts.
inline constexpr std::size_t kFieldNameCount = 31;
inline constexpr const char* kFieldNames[kFieldNameCount] = {
    "",
    "Port",
    "apiVersion",
    "arrivals",
    "at",
    "berth",
    "counts",
    "crew",
    "crewed",
    "harbour",
    "home",
    "items",
    "kind",
    "labels",
    "mastCount",
    "metadata",
    "name",
    "namespace",
    "oars",
    "options",
    "podIPs",
    "port",
    "ports",
    "rank",
    "sail",
    "selector",
    "spec",
    "status",
    "stores",
    "tide-table",
    "value",
};
extern const Key kKeys[kFieldNameCount];

}  // namespace drakkar::api::generated

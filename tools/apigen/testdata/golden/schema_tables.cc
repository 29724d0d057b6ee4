// Made by tools/apigen from schema/.
#include "api/field_names.h"
#include "api/scheme/internal/tables.h"

namespace drakkar::api::generated {

using enum FieldKind;
using enum MergeKind;
using Text = std::string_view;
using Texts = std::span<const Text>;

extern const StructSchema kStructs[8];
extern const TypeSchema kTypes[7];
extern const KindSchema kKinds[1];
extern const KindSchema kBodies[2];

namespace {

constexpr Text kTexts[] = {"name", "rank", "sh", "all", "fleet", "status", "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch", "spec.sail"};

}  // namespace

// Types of elements.
constinit const TypeSchema kTypes[7] = {
    {kString},
    {kStruct, &kStructs[3], nullptr, kGranular},
    {kStruct, &kStructs[2], nullptr, kGranular},
    {kQuantity},
    {kStruct, &kStructs[0], nullptr, kGranular},
    {kInt64},
    {kList, nullptr, &kTypes[5], kAtomic},
};

namespace {

constinit const FieldSchema kFields[] = {
    {&kKeys[4], {kTime}, 1, 0, false, false, false},  // at
    {&kKeys[20], {kInt32}, 2, 0, false, true, false},  // port
    {&kKeys[1], {kInt32}, 1, 0, true, false, false},  // Port
    {&kKeys[15], {kString}, 1, 0, true, false, false},  // name
    {&kKeys[22], {kString}, 2, 0, false, true, false},  // rank
    {&kKeys[29], {kString}, 3, 0, false, true, false},  // value
    {&kKeys[19], {kList, nullptr, &kTypes[0], kAtomic}, 4, 0, false, true, false},  // podIPs
    {&kKeys[11], {kString}, 0, 0, false, true, false},  // kind
    {&kKeys[2], {kString}, 0, 0, false, true, false},  // apiVersion
    {&kKeys[14], {kStruct, &kStructs[5], nullptr, kGranular}, 1, 0, false, false, false},  // metadata
    {&kKeys[25], {kStruct, &kStructs[6], nullptr, kGranular}, 2, 0, true, false, false},  // spec
    {&kKeys[26], {kStruct, &kStructs[7], nullptr, kGranular}, 3, 0, false, true, true},  // status
    {&kKeys[11], {kString}, 0, 0, false, true, false},  // kind
    {&kKeys[2], {kString}, 0, 0, false, true, false},  // apiVersion
    {&kKeys[14], {kStruct, &kStructs[5], nullptr, kGranular}, 1, 0, false, false, false},  // metadata
    {&kKeys[10], {kList, nullptr, &kTypes[1], kAtomic}, 2, 0, true, false, false},  // items
    {&kKeys[15], {kString}, 1, 0, false, true, false},  // name
    {&kKeys[16], {kString}, 3, 0, false, true, false},  // namespace
    {&kKeys[12], {kMap, nullptr, &kTypes[0], kGranular}, 11, 0, false, true, false},  // labels
    {&kKeys[17], {kInt32}, 1, 0, false, true, true, "Pairs of oars; absent: decided by the server."},  // oars
    {&kKeys[7], {kList, nullptr, &kTypes[2], kMapList, Texts(kTexts + 0, 2), "name", true, true, false}, 2, 0, true, false, false},  // crew
    {&kKeys[21], {kList, nullptr, &kTypes[0], kSet, {}, "", true, false, false}, 3, 0, false, true, false},  // ports
    {&kKeys[27], {kMap, nullptr, &kTypes[3], kGranular}, 4, 0, false, true, false},  // stores
    {&kKeys[24], {kMap, nullptr, &kTypes[0], kAtomic}, 5, 0, false, true, false},  // selector
    {&kKeys[9], {kStruct, &kStructs[1], nullptr, kGranular}, 6, 0, false, true, true},  // home
    {&kKeys[23], {kString}, 1, 7, false, true, false},  // sail
    {&kKeys[13], {kInt64}, 2, 7, false, true, false},  // mastCount
    {&kKeys[18], {kRaw}, 8, 0, false, false, false},  // options
    {&kKeys[5], {kIntOrString}, 9, 0, false, true, true},  // berth
    {&kKeys[3], {kList, nullptr, &kTypes[4], kAtomic}, 1, 0, false, true, false},  // arrivals
    {&kKeys[6], {kMap, nullptr, &kTypes[6], kGranular}, 2, 0, false, true, false},  // counts
};

// What StructSchema::Find looks into.
constexpr std::uint8_t kIndex[] = {
    0, 1, 255, 0, 1, 2, 3, 0, 4, 1, 255, 3, 255, 2, 0, 255,
    0, 1, 2, 3, 2, 1, 0, 255, 7, 4, 5, 1, 9, 8, 255, 3,
    255, 255, 6, 2, 255, 0, 255, 255, 1, 0,
};

}  // namespace

constinit const StructSchema kStructs[8] = {
    {"io.example.demo.v1.ArrivalTime", std::span(kFields + 0, 2), kIndex + 0, 350025589u, 31},
    {"io.example.demo.v1.Harbour", std::span(kFields + 2, 1), kIndex + 2, 2654435761u, 31},
    {"io.example.demo.v1.Sailor", std::span(kFields + 3, 4), kIndex + 4, 795024139u, 30},
    {"io.example.demo.v1.Ship", std::span(kFields + 7, 5), kIndex + 8, 2654435761u, 29},
    {"io.example.demo.v1.ShipList", std::span(kFields + 12, 4), kIndex + 16, 795024139u, 30},
    {"io.example.demo.v1.ShipMeta", std::span(kFields + 16, 3), kIndex + 20, 3310400750u, 30},
    {"io.example.demo.v1.ShipSpec", std::span(kFields + 19, 10), kIndex + 24, 1985240254u, 28},
    {"io.example.demo.v1.ShipStatus", std::span(kFields + 29, 2), kIndex + 40, 795024139u, 31},
};

namespace {

constexpr ColumnSchema kColumns[] = {
    {"Name", "string", "name", 0, ""},
    {"Home Port", "string", "", 1, "Where it came from."},
};

constexpr std::uint16_t kKindOrder[] = {
    1, 0, 2,
};
constexpr std::uint16_t kPluralOrder[] = {
    0,
};

}  // namespace

constinit const KindSchema kKinds[1] = {
    {"demo.example.com", "v1", "Ship", "ships", "ship", Texts(kTexts + 2, 1), Texts(kTexts + 3, 2), true, true, Texts(kTexts + 5, 1), Texts(kTexts + 6, 8), &kStructs[3], std::span(kColumns + 0, 2), Texts(kTexts + 14, 1), &kKinds[0]},
};

constinit const KindSchema kBodies[2] = {
    {"", "v1", "Sailor", "", "", {}, {}, false, false, {}, {}, &kStructs[2], {}, {}, nullptr},
    {"demo.example.com", "v1", "ShipList", "", "", {}, {}, false, false, {}, {}, &kStructs[4], {}, {}, nullptr},
};

std::span<const StructSchema> Structs() { return kStructs; }
std::span<const KindSchema> Kinds() { return kKinds; }
std::span<const KindSchema> Bodies() { return kBodies; }
std::span<const std::uint16_t> KindOrder() { return kKindOrder; }
std::span<const std::uint16_t> PluralOrder() { return kPluralOrder; }

}  // namespace drakkar::api::generated

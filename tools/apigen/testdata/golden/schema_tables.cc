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

constexpr Text kTexts[] = {"name", "rank", "Square", "Lateen", "sh", "all", "fleet", "status", "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch", "spec.sail"};

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

constinit const FieldRules kRules[] = {
    {.needed = true, .minimum = 1, .maximum = 65535},
    {.default_form = FieldRules::Default::kInteger, .default_number = 8, .minimum = 1},
    {.format = FieldRules::Format::kDnsLabel, .max_items = 9},
    {.default_form = FieldRules::Default::kEmptyObject, .when_key = &kKeys[8], .when_value = "Yes", .immutable = true},
    {.default_form = FieldRules::Default::kText, .default_text = "Square", .values = Texts(kTexts + 2, 2)},
};

constinit const FieldSchema kFields[] = {
    {&kKeys[4], {kTime}, 1, 0, false, false, false},  // at
    {&kKeys[21], {kInt32}, 2, 0, false, true, false},  // port
    {&kKeys[1], {kInt32}, 1, 0, true, false, false, "", false, true, &kRules[0]},  // Port
    {&kKeys[16], {kString}, 1, 0, true, false, false},  // name
    {&kKeys[23], {kString}, 2, 0, false, true, false},  // rank
    {&kKeys[30], {kString}, 3, 0, false, true, false},  // value
    {&kKeys[20], {kList, nullptr, &kTypes[0], kAtomic}, 4, 0, false, true, false},  // podIPs
    {&kKeys[12], {kString}, 0, 0, false, true, false},  // kind
    {&kKeys[2], {kString}, 0, 0, false, true, false},  // apiVersion
    {&kKeys[15], {kStruct, &kStructs[5], nullptr, kGranular}, 1, 0, false, false, false},  // metadata
    {&kKeys[26], {kStruct, &kStructs[6], nullptr, kGranular}, 2, 0, true, false, false, "", true, true, nullptr},  // spec
    {&kKeys[27], {kStruct, &kStructs[7], nullptr, kGranular}, 3, 0, false, true, true},  // status
    {&kKeys[12], {kString}, 0, 0, false, true, false},  // kind
    {&kKeys[2], {kString}, 0, 0, false, true, false},  // apiVersion
    {&kKeys[15], {kStruct, &kStructs[5], nullptr, kGranular}, 1, 0, false, false, false},  // metadata
    {&kKeys[11], {kList, nullptr, &kTypes[1], kAtomic}, 2, 0, true, false, false, "", true, true, nullptr},  // items
    {&kKeys[16], {kString}, 1, 0, false, true, false},  // name
    {&kKeys[17], {kString}, 3, 0, false, true, false},  // namespace
    {&kKeys[13], {kMap, nullptr, &kTypes[0], kGranular}, 11, 0, false, true, false},  // labels
    {&kKeys[18], {kInt32}, 1, 0, false, true, true, "Pairs of oars; absent: decided by the server.", true, true, &kRules[1]},  // oars
    {&kKeys[7], {kList, nullptr, &kTypes[2], kMapList, Texts(kTexts + 0, 2), "name", true, true, false}, 2, 0, true, false, false},  // crew
    {&kKeys[22], {kList, nullptr, &kTypes[0], kSet, {}, "", true, false, false}, 3, 0, false, true, false, "", false, true, &kRules[2]},  // ports
    {&kKeys[28], {kMap, nullptr, &kTypes[3], kGranular}, 4, 0, false, true, false},  // stores
    {&kKeys[25], {kMap, nullptr, &kTypes[0], kAtomic}, 5, 0, false, true, false},  // selector
    {&kKeys[8], {kString}, 10, 0, false, true, false},  // crewed
    {&kKeys[10], {kStruct, &kStructs[1], nullptr, kGranular}, 6, 0, false, true, true, "", true, true, &kRules[3]},  // home
    {&kKeys[24], {kString}, 1, 7, false, true, false, "", true, true, &kRules[4]},  // sail
    {&kKeys[14], {kInt64}, 2, 7, false, true, false},  // mastCount
    {&kKeys[19], {kRaw}, 8, 0, false, false, false},  // options
    {&kKeys[5], {kIntOrString}, 9, 0, false, true, true},  // berth
    {&kKeys[3], {kList, nullptr, &kTypes[4], kAtomic}, 1, 0, false, true, false},  // arrivals
    {&kKeys[6], {kMap, nullptr, &kTypes[6], kGranular}, 2, 0, false, true, false},  // counts
};

// What StructSchema::Find looks into.
constexpr std::uint8_t kIndex[] = {
    0, 1, 255, 0, 1, 3, 2, 0, 3, 1, 2, 0, 255, 4, 255, 255,
    0, 2, 3, 1, 2, 255, 1, 0, 4, 255, 8, 255, 3, 255, 10, 0,
    9, 1, 5, 255, 2, 6, 255, 7, 1, 0,
};

}  // namespace

constinit const StructSchema kStructs[8] = {
    {"io.example.demo.v1.ArrivalTime", std::span(kFields + 0, 2), kIndex + 0, 2654435761u, 31},
    {"io.example.demo.v1.Harbour", std::span(kFields + 2, 1), kIndex + 2, 2654435761u, 31},
    {"io.example.demo.v1.Sailor", std::span(kFields + 3, 4), kIndex + 4, 2654435761u, 30},
    {"io.example.demo.v1.Ship", std::span(kFields + 7, 5), kIndex + 8, 2654435761u, 29},
    {"io.example.demo.v1.ShipList", std::span(kFields + 12, 4), kIndex + 16, 1843308241u, 30},
    {"io.example.demo.v1.ShipMeta", std::span(kFields + 16, 3), kIndex + 20, 2654435761u, 30},
    {"io.example.demo.v1.ShipSpec", std::span(kFields + 19, 11), kIndex + 24, 350025589u, 28},
    {"io.example.demo.v1.ShipStatus", std::span(kFields + 30, 2), kIndex + 40, 795024139u, 31},
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
    {"demo.example.com", "v1", "Ship", "ships", "ship", Texts(kTexts + 4, 1), Texts(kTexts + 5, 2), true, true, Texts(kTexts + 7, 1), Texts(kTexts + 8, 8), &kStructs[3], std::span(kColumns + 0, 2), Texts(kTexts + 16, 1), &kKinds[0], true, FieldRules::Format::kDnsLabel},
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

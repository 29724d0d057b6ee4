#include "device/cel_device.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/text/text.h"
#include "cel/library/objects.h"
#include "device/device_cel.h"

namespace drakkar::device {
namespace {

// Inlined, because a call to memcmp takes longer than the comparison.
inline bool IsSamePath(std::string_view a, std::string_view b) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  if (a.size() != b.size()) return false;
  if (a.size() < kWord) return a == b;
  const auto differs = [&](std::size_t at) {
    std::uint64_t words[2];
    std::memcpy(&words[0], a.data() + at, kWord);
    std::memcpy(&words[1], b.data() + at, kWord);
    return words[0] != words[1];
  };
  const std::size_t last = a.size() - kWord;
  for (std::size_t at = 0; at < last; at += kWord) {
    if (differs(at)) return false;
  }
  return !differs(last);
}

// Entries of one domain, sorted by name.
class DomainMap final : public cel::MapValue {
 public:
  struct Entry {
    std::string_view name;
    cel::Value value;
  };

  bool Find(const cel::Value& key, std::uint32_t, cel::Value* out) const override {
    if (key.kind != cel::Kind::kString) return false;
    const std::string_view name = key.text();
    for (const Entry& entry : entries) {
      if (entry.name == name) {
        *out = entry.value;
        return true;
      }
    }
    return false;
  }
  cel::Value KeyAt(std::uint32_t index) const override {
    return cel::MakeString(entries[index].name);
  }
  cel::Value ValueAt(std::uint32_t index) const override { return entries[index].value; }
  cel::Value AsValue() const {
    return cel::MakeMap(this, static_cast<std::uint32_t>(entries.size()));
  }

  std::vector<Entry> entries;
};

// Domains, sorted. An unknown domain is an empty map, so that the error names the missing attribute
// and not its domain.
class DomainsMap final : public cel::MapValue {
 public:
  struct Domain {
    std::string_view name;
    DomainMap map;
  };

  bool Find(const cel::Value& key, std::uint32_t, cel::Value* out) const override {
    static const DomainMap kEmpty;
    const DomainMap* found = FindDomain(key);
    *out = (found ? found : &kEmpty)->AsValue();
    return true;
  }
  bool Contains(const cel::Value& key, std::uint32_t) const override {
    return FindDomain(key) != nullptr;
  }
  cel::Value KeyAt(std::uint32_t index) const override {
    return cel::MakeString(domains[index].name);
  }
  cel::Value ValueAt(std::uint32_t index) const override { return domains[index].map.AsValue(); }
  cel::Value AsValue() const {
    return cel::MakeMap(this, static_cast<std::uint32_t>(domains.size()));
  }

  void Add(std::string_view domain, std::string_view name, cel::Value value) {
    auto at = std::find_if(domains.begin(), domains.end(),
                           [&](const Domain& d) { return d.name == domain; });
    if (at == domains.end()) at = domains.insert(at, Domain{domain, {}});
    at->map.entries.push_back({name, value});
  }
  void Sort() {
    std::sort(domains.begin(), domains.end(),
              [](const Domain& a, const Domain& b) { return a.name < b.name; });
    for (Domain& domain : domains) {
      std::sort(
          domain.map.entries.begin(), domain.map.entries.end(),
          [](const DomainMap::Entry& a, const DomainMap::Entry& b) { return a.name < b.name; });
    }
  }

  std::vector<Domain> domains;

 private:
  const DomainMap* FindDomain(const cel::Value& key) const {
    if (key.kind != cel::Kind::kString) return nullptr;
    for (const Domain& domain : domains) {
      if (domain.name == key.text()) return &domain.map;
    }
    return nullptr;
  }
};

}  // namespace

// Owns everything the values point to.
struct CelDevice::State final : public cel::MapValue {
  bool Find(const cel::Value& key, std::uint32_t, cel::Value* out) const override {
    if (key.kind != cel::Kind::kString) return false;
    for (std::uint32_t i = 0; i < 4; ++i) {
      if (key.text() == kFields[i]) {
        *out = fields[i];
        return true;
      }
    }
    return false;
  }
  // device.attributes["domain"].name, and the same for capacity, in one lookup.
  bool FindPath(const cel::KeyPath& path, cel::Value* out) const override {
    if (paths.empty()) return false;
    for (std::size_t at = path.hash & path_mask;; at = (at + 1) & path_mask) {
      const Path& entry = paths[at];
      if (entry.hash == 0) return false;
      if (entry.hash == path.hash && IsSamePath(entry.text, path.text)) {
        *out = entry.value;
        return true;
      }
    }
  }
  void AddPaths(std::string_view field, const DomainsMap& domains) {
    for (const DomainsMap::Domain& domain : domains.domains) {
      for (const DomainMap::Entry& entry : domain.map.entries) {
        const std::string_view keys[] = {field, domain.name, entry.name};
        const std::string text = cel::JoinKeys(keys);
        const std::uint64_t hash = cel::HashJoined(text);
        if (hash == 0) continue;  // marks a free slot; the step-by-step lookup still finds it
        std::size_t at = hash & path_mask;
        while (paths[at].hash != 0) at = (at + 1) & path_mask;
        paths[at] = {hash, cel::CopyText(arena, text), entry.value};
      }
    }
  }
  void IndexPaths(std::size_t count) {
    if (count == 0) return;
    std::size_t size = 4;
    while (size < 2 * count) size *= 2;
    paths.resize(size);
    path_mask = size - 1;
    AddPaths(kFields[0], attributes);
    AddPaths(kFields[1], capacity);
  }
  cel::Value KeyAt(std::uint32_t index) const override { return cel::MakeString(kFields[index]); }
  cel::Value ValueAt(std::uint32_t index) const override { return fields[index]; }

  static constexpr std::string_view kFields[] = {"attributes", "capacity", "driver",
                                                 "allowMultipleAllocations"};

  struct Path {
    std::uint64_t hash = 0;
    std::string_view text;  // the joined keys
    cel::Value value;
  };

  DeviceInput input;
  cel::Arena arena;
  DomainsMap attributes;
  DomainsMap capacity;
  cel::Value fields[4];
  cel::Value variable;
  std::vector<Path> paths;  // open addressing, at most half full
  std::size_t path_mask = 0;
};

namespace {

Result<cel::Value> VersionValue(cel::Arena& arena, const VersionText& version) {
  Result<api::Semver> parsed = api::Semver::Parse(version.text);
  if (!parsed.ok()) return parsed.error().Prefixed("parse semantic version");
  return cel::MakeObject(arena.New<cel::SemverValue>(*std::move(parsed)));
}

template <typename T, typename Make>
Result<cel::Value> ListOf(cel::Arena& arena, const std::vector<T>& items, const Make& make) {
  std::vector<cel::Value> values;
  for (const auto& item : items) {
    Result<cel::Value> value = make(item);
    if (!value.ok()) return value;
    values.push_back(*value);
  }
  return cel::NewList(arena, values.data(), values.size());
}

Result<cel::Value> Convert(cel::Arena& arena, const AttributeValue& attribute) {
  switch (attribute.index()) {
    case 1:
      return cel::MakeInt(std::get<1>(attribute));
    case 2:
      return cel::MakeBool(std::get<2>(attribute));
    case 3:
      return cel::MakeString(std::get<3>(attribute));
    case 4:
      return VersionValue(arena, std::get<4>(attribute));
    case 5:
      return ListOf(arena, std::get<5>(attribute),
                    [](std::int64_t i) -> Result<cel::Value> { return cel::MakeInt(i); });
    case 6:
      return ListOf(arena, std::get<6>(attribute),
                    [](bool b) -> Result<cel::Value> { return cel::MakeBool(b); });
    case 7:
      return ListOf(arena, std::get<7>(attribute),
                    [](const std::string& s) -> Result<cel::Value> { return cel::MakeString(s); });
    case 8:
      return ListOf(arena, std::get<8>(attribute),
                    [&](const VersionText& v) { return VersionValue(arena, v); });
    default:
      return InvalidArgument("unsupported attribute value");
  }
}

std::pair<std::string_view, std::string_view> SplitName(std::string_view name,
                                                        std::string_view driver) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return {driver, name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

// The type name of a list element in errors: WantedName is for the type that the first element
// requires, the other for an actual value.
std::string_view WantedName(const cel::Value& value) {
  switch (value.kind) {
    case cel::Kind::kInt:
      return "int";
    case cel::Kind::kBool:
      return "bool";
    case cel::Kind::kString:
      return "string";
    default:
      return "semver";
  }
}
std::string_view NativeName(const cel::Value& value) {
  switch (value.kind) {
    case cel::Kind::kNull:
      return "structpb.NullValue";
    case cel::Kind::kInt:
      return "int64";
    case cel::Kind::kUint:
      return "uint64";
    case cel::Kind::kDouble:
      return "float64";
    case cel::Kind::kBytes:
      return "[]uint8";
    case cel::Kind::kMap:
      return "map[ref.Val]ref.Val";
    case cel::Kind::kList:
      return "[]ref.Val";
    case cel::Kind::kDuration:
      return "time.Duration";
    case cel::Kind::kTimestamp:
      return "time.Time";
    case cel::Kind::kObject:
      return value.object->type_name() == cel::SemverValue::kTypeName ? "semver.Version"
                                                                      : value.object->type_name();
    default:
      return cel::TypeName(value);
  }
}

bool IsSemver(const cel::Value& value) {
  return value.kind == cel::Kind::kObject &&
         value.object->type_name() == cel::SemverValue::kTypeName;
}
VersionText TextOf(const cel::Value& value) {
  return {static_cast<const cel::SemverValue*>(value.object)->version.ToString()};
}

Result<AttributeValue> ToList(const cel::Value& list) {
  if (list.size == 0) return AttributeValue(std::vector<std::string>());
  const cel::Value* items = cel::ListItems(list);
  const cel::Value& first = items[0];
  if (first.kind != cel::Kind::kInt && first.kind != cel::Kind::kBool &&
      first.kind != cel::Kind::kString && !IsSemver(first)) {
    return InvalidArgument(StrCat("unsupported list element type: ", NativeName(first)));
  }
  for (std::uint32_t i = 1; i < list.size; ++i) {
    if (items[i].kind != first.kind || IsSemver(items[i]) != IsSemver(first)) {
      return InvalidArgument(StrCat("expected list element at index ", i, " to be ",
                                    WantedName(first), ", got ", NativeName(items[i])));
    }
  }
  std::vector<std::int64_t> ints;
  std::vector<bool> bools;
  std::vector<std::string> strings;
  std::vector<VersionText> versions;
  for (std::uint32_t i = 0; i < list.size; ++i) {
    switch (first.kind) {
      case cel::Kind::kInt:
        ints.push_back(items[i].integer);
        break;
      case cel::Kind::kBool:
        bools.push_back(items[i].boolean);
        break;
      case cel::Kind::kString:
        strings.emplace_back(items[i].text());
        break;
      default:
        versions.push_back(TextOf(items[i]));
        break;
    }
  }
  switch (first.kind) {
    case cel::Kind::kInt:
      return AttributeValue(std::move(ints));
    case cel::Kind::kBool:
      return AttributeValue(std::move(bools));
    case cel::Kind::kString:
      return AttributeValue(std::move(strings));
    default:
      return AttributeValue(std::move(versions));
  }
}

}  // namespace

CelDevice::CelDevice(std::unique_ptr<State> state) : state_(std::move(state)) {}
CelDevice::~CelDevice() = default;

std::span<const cel::Value> CelDevice::variables() const {
  return {&state_->variable, 1};
}

Result<std::unique_ptr<const CelDevice>> CelDevice::Create(const DeviceInput& input) {
  auto state = std::make_unique<State>();
  state->input = input;
  const DeviceInput& kept = state->input;
  for (const auto& [name, attribute] : kept.attributes) {
    Result<cel::Value> value = Convert(state->arena, attribute);
    if (!value.ok()) return value.error().Prefixed(StrCat("attribute ", name));
    const auto [domain, id] = SplitName(name, kept.driver);
    state->attributes.Add(domain, id, *value);
  }
  for (const auto& [name, quantity] : kept.capacity) {
    const auto [domain, id] = SplitName(name, kept.driver);
    state->capacity.Add(domain, id,
                        cel::MakeObject(state->arena.New<cel::QuantityValue>(quantity)));
  }
  state->attributes.Sort();
  state->capacity.Sort();
  state->IndexPaths(kept.attributes.size() + kept.capacity.size());
  state->fields[0] = state->attributes.AsValue();
  state->fields[1] = state->capacity.AsValue();
  state->fields[2] = cel::MakeString(kept.driver);
  state->fields[3] = cel::MakeBool(kept.allow_multiple_allocations);
  state->variable = cel::MakeMap(state.get(), 4);
  return std::unique_ptr<const CelDevice>(new CelDevice(std::move(state)));
}

Result<AttributeValue> ToAttributeValue(const cel::Value& value) {
  switch (value.kind) {
    case cel::Kind::kInt:
      return AttributeValue(value.integer);
    case cel::Kind::kBool:
      return AttributeValue(value.boolean);
    case cel::Kind::kString:
      return AttributeValue(std::string(value.text()));
    case cel::Kind::kList:
      return ToList(value);
    default:
      if (IsSemver(value)) return AttributeValue(TextOf(value));
      return InvalidArgument(StrCat("unsupported CEL return type: ", NativeName(value)));
  }
}

}  // namespace drakkar::device

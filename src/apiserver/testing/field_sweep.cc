#include "apiserver/testing/field_sweep.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "api/json/writer.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

// Fields whose members are named by the user.
const std::set<std::string_view> kMaps = {"annotations",
                                          "attributes",
                                          "binaryData",
                                          "capacity",
                                          "consumedCapacity",
                                          "counters",
                                          "data",
                                          "labels",
                                          "limits",
                                          "matchLabels",
                                          "nodeAllocatableResources",
                                          "nodeSelector",
                                          "overhead",
                                          "parameters",
                                          "requests",
                                          "selector",
                                          "stringData"};

bool LooksLikeANumber(const std::string& text) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

// A copy that differs from the others in its identifying fields.
JsonNode Numbered(JsonNode node, long number) {
  if (node.type == JsonNode::Type::kString) {
    node.text =
        LooksLikeANumber(node.text) ? std::to_string(1'000 + number) : StrCat(node.text, number);
  }
  for (const char* field :
       {"name", "device", "key", "type", "uid", "ip", "containerPort", "port"}) {
    for (auto& [name, member] : node.members) {
      if (name != field || !member.items.empty() || !member.members.empty()) continue;
      if (member.type == JsonNode::Type::kNumber) {
        member.text = std::to_string(1'000 + number);
      } else {
        member.text += std::to_string(number);
      }
      return node;
    }
  }
  return node;
}

// A judgement that differs only in the tried size, or in how many more errors there are, is the
// same.
std::string WithoutNumber(std::string text, long number) {
  if (const std::size_t more = text.rfind("; and "); more != text.npos) text.resize(more);
  const std::string digits = std::to_string(number);
  for (std::size_t at = text.find(digits); at != text.npos; at = text.find(digits, at)) {
    text.erase(at, digits.size());
  }
  return text;
}

}  // namespace

JsonNode JsonNode::From(api::Value value) {
  JsonNode node;
  if (value.is_object()) {
    node.type = Type::kObject;
    for (const auto& [key, name, member] : value.members()) {
      node.members.emplace_back(std::string(name), From(member));
    }
  } else if (value.is_array()) {
    node.type = Type::kList;
    for (const api::Value item : value.elements()) node.items.push_back(From(item));
  } else if (value.is_string()) {
    node = String(std::string(value.str()));
  } else if (value.has_value()) {
    node.text = api::WriteJson(value);
    node.type = node.text == "true" || node.text == "false" ? Type::kBool : Type::kNumber;
  }
  return node;
}

JsonNode JsonNode::String(std::string text) {
  JsonNode node;
  node.type = Type::kString;
  node.text = std::move(text);
  return node;
}

void JsonNode::AppendTo(std::string& out) const {
  switch (type) {
    case Type::kNull:
      out += "null";
      return;
    case Type::kBool:
    case Type::kNumber:
      out += text;
      return;
    case Type::kString:
      api::AppendJsonString(out, text);
      return;
    case Type::kList:
      out += '[';
      for (const JsonNode& item : items) {
        if (item.type == Type::kNull) continue;
        if (out.back() != '[') out += ',';
        item.AppendTo(out);
      }
      out += ']';
      return;
    case Type::kObject:
      out += '{';
      for (const auto& [name, member] : members) {
        if (member.type == Type::kNull) continue;
        if (out.back() != '{') out += ',';
        api::AppendJsonString(out, name);
        out += ':';
        member.AppendTo(out);
      }
      out += '}';
  }
}

std::string JsonNode::Json() const {
  std::string out;
  AppendTo(out);
  return out;
}

std::string FieldSweep::Run(const std::vector<std::string>& roots) {
  roots_ = roots;
  lines_.clear();
  Visit(document_, "");
  return std::move(lines_);
}

void FieldSweep::Try(JsonNode& node, const std::string& path, const std::string& change,
                     JsonNode instead) {
  std::swap(node, instead);
  const std::string judgement = describe_();
  std::swap(node, instead);
  if (!judgement.empty()) lines_ += StrCat(path, " ", change, ": ", judgement, "\n");
}

void FieldSweep::TrySizes(JsonNode& node, const std::string& path, const std::vector<long>& sizes,
                          const std::function<JsonNode(long)>& make) {
  std::string last = judge_();
  long last_size = 0;
  for (const long size : sizes) {
    JsonNode changed = make(size);
    std::swap(node, changed);
    const std::string judgement = judge_();
    std::swap(node, changed);
    if (WithoutNumber(judgement, size) != WithoutNumber(last, last_size)) {
      lines_ += StrCat(path, " of ", size, ": ", judgement.empty() ? "ok" : judgement, "\n");
    }
    last = judgement;
    last_size = size;
  }
}

void FieldSweep::VisitString(JsonNode& node, const std::string& path) {
  Try(node, path, "empty", JsonNode::String(""));
  Try(node, path, "malformed", JsonNode::String("-Not valid!"));
  Try(node, path, "changed", JsonNode::String(LooksLikeANumber(node.text) ? "7" : "other"));
  if (LooksLikeANumber(node.text)) {
    for (const char* number : {"-1", "0", "1500m", "1n", "10E"}) {
      Try(node, path, number, JsonNode::String(number));
    }
    return;
  }
  TrySizes(node, path, {63, 64, 128, 129, 253, 254, 256, 257, 1'024, 1'025, 10'240, 10'241},
           [](long size) { return JsonNode::String(std::string(size, 'a')); });
}

void FieldSweep::VisitNumber(JsonNode& node, const std::string& path) {
  TrySizes(node, path, {-1, 0, 1, 2, 100, 101, 65'535, 65'536, 100'000, 100'001, 2'147'483'647},
           [&node](long size) {
             JsonNode number = node;
             number.text = std::to_string(size);
             return number;
           });
}

void FieldSweep::VisitList(JsonNode& node, const std::string& path) {
  Try(node, path, "empty", {.type = JsonNode::Type::kList, .text = "", .items = {}, .members = {}});
  if (node.items.empty()) return;
  JsonNode twice = node;
  twice.items.push_back(node.items.front());
  Try(node, path, "with a duplicate", std::move(twice));
  TrySizes(node, path, {2, 4, 5, 8, 9, 10, 11, 16, 17, 32, 33, 64, 65, 100, 101, 128, 129},
           [&node](long size) {
             JsonNode longer = node;
             longer.items.resize(std::min<std::size_t>(size, longer.items.size()));
             while (longer.items.size() < static_cast<std::size_t>(size)) {
               longer.items.push_back(
                   Numbered(node.items.front(), static_cast<long>(longer.items.size())));
             }
             return longer;
           });
}

void FieldSweep::VisitMap(JsonNode& node, const std::string& path) {
  if (node.members.empty()) return;
  JsonNode odd = node;
  odd.members.front().first = "-Not a key!";
  Try(node, path, "with an odd key", std::move(odd));
  TrySizes(node, path, {8, 9, 16, 17, 32, 33, 64, 65}, [&node](long size) {
    JsonNode longer = node;
    while (longer.members.size() < static_cast<std::size_t>(size)) {
      longer.members.emplace_back(StrCat(node.members.front().first, longer.members.size()),
                                  node.members.front().second);
    }
    return longer;
  });
}

void FieldSweep::Visit(JsonNode& node, const std::string& path) {
  const bool is_inside =
      std::ranges::any_of(roots_, [&](const std::string& root) { return path.starts_with(root); });
  if (is_inside) {
    Try(node, path, "absent", JsonNode());
    switch (node.type) {
      case JsonNode::Type::kString:
        VisitString(node, path);
        break;
      case JsonNode::Type::kNumber:
        VisitNumber(node, path);
        break;
      case JsonNode::Type::kBool: {
        JsonNode flipped = node;
        flipped.text = node.text == "true" ? "false" : "true";
        Try(node, path, "flipped", std::move(flipped));
        break;
      }
      case JsonNode::Type::kList:
        VisitList(node, path);
        break;
      case JsonNode::Type::kObject: {
        const std::string last = path.substr(path.rfind('.') + 1);
        if (kMaps.contains(last)) VisitMap(node, path);
        break;
      }
      case JsonNode::Type::kNull:
        break;
    }
  }
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    Visit(node.items[i], StrCat(path, "[", i, "]"));
  }
  for (auto& [name, member] : node.members) {
    Visit(member, path.empty() ? name : StrCat(path, ".", name));
  }
}

std::string NewLines(const std::string& lines, const std::string& known) {
  constexpr std::size_t kMany = 5;
  const std::vector<std::string_view> before = Split(known, '\n');
  const std::set<std::string_view> expected(before.begin(), before.end());
  std::size_t same = 0;
  std::map<std::string_view, std::vector<std::string_view>> by_judgement;
  for (const std::string_view line : Split(lines, '\n')) {
    if (line.empty()) continue;
    if (expected.contains(line)) {
      ++same;
    } else {
      by_judgement[line.substr(line.find(": ") + 2)].push_back(line);
    }
  }
  std::string text = StrCat("(", same, " as above)\n");
  for (const auto& [judgement, sharing] : by_judgement) {
    if (sharing.size() >= kMany) {
      text += StrCat("(", sharing.size(), " changes): ", judgement, "\n");
    } else {
      for (const std::string_view line : sharing) text += StrCat(line, "\n");
    }
  }
  return text;
}

}  // namespace drakkar::apiserver

#include "tests/support/mini_json.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace drakkar::testing {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<Json> Read() {
    Json value;
    if (!Value(value)) return std::nullopt;
    Space();
    if (at_ != text_.size()) return std::nullopt;
    return value;
  }

 private:
  void Space() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  bool Take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool Value(Json& out) {
    Space();
    if (at_ >= text_.size()) return false;
    switch (text_[at_]) {
      case '{':
        return Object(out);
      case '[':
        return Array(out);
      case '"':
        out.kind = Json::Kind::kString;
        return String(out.text);
      case 't':
        out.kind = Json::Kind::kBool;
        out.boolean = true;
        return Take("true");
      case 'f':
        out.kind = Json::Kind::kBool;
        return Take("false");
      case 'n':
        return Take("null");
      default:
        return Number(out);
    }
  }

  bool Object(Json& out) {
    out.kind = Json::Kind::kObject;
    ++at_;
    Space();
    if (Take("}")) return true;
    for (;;) {
      Space();
      JsonMember member;
      if (at_ >= text_.size() || text_[at_] != '"' || !String(member.first)) return false;
      Space();
      if (!Take(":") || !Value(member.second)) return false;
      out.members.push_back(std::move(member));
      Space();
      if (Take("}")) return true;
      if (!Take(",")) return false;
    }
  }

  bool Array(Json& out) {
    out.kind = Json::Kind::kArray;
    ++at_;
    Space();
    if (Take("]")) return true;
    for (;;) {
      if (!Value(out.items.emplace_back())) return false;
      Space();
      if (Take("]")) return true;
      if (!Take(",")) return false;
    }
  }

  bool Number(Json& out) {
    out.kind = Json::Kind::kNumber;
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           std::string_view("+-.0123456789eE").find(text_[at_]) != std::string_view::npos)
      ++at_;
    out.text = text_.substr(begin, at_ - begin);
    return at_ != begin;
  }

  std::optional<unsigned> Hex4() {
    if (at_ + 4 > text_.size()) return std::nullopt;
    unsigned code = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = text_[at_++];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return std::nullopt;
      code = code * 16 + static_cast<unsigned>(digit);
    }
    return code;
  }

  static void AppendUtf8(std::string& out, unsigned code) {
    const auto put = [&out](unsigned byte) { out += static_cast<char>(byte); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
    } else {
      put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F));
      put(0x80 | (code & 0x3F));
    }
  }

  bool String(std::string& out) {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        ++at_;
        return true;
      }
      if (text_[at_] != '\\') {
        out += text_[at_];
        continue;
      }
      if (++at_ >= text_.size()) return false;
      static constexpr std::string_view kFrom = "\"\\/bfnrt";
      static constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
      if (const std::size_t i = kFrom.find(text_[at_]); i != std::string_view::npos) {
        out += kTo[i];
        continue;
      }
      if (text_[at_] != 'u') return false;
      ++at_;
      std::optional<unsigned> code = Hex4();
      if (!code) return false;
      if (*code >= 0xD800 && *code < 0xDC00 && Take("\\u")) {
        const std::optional<unsigned> low = Hex4();
        if (!low) return false;
        code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
      }
      AppendUtf8(out, *code);
      --at_;
    }
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

const Json* Json::Find(std::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return &value;
  }
  return nullptr;
}

const Json& Json::operator[](std::string_view key) const {
  static const Json kNull;
  const Json* found = Find(key);
  return found ? *found : kNull;
}

std::int64_t Json::AsInt() const {
  return std::strtoll(text.c_str(), nullptr, 10);
}
double Json::AsDouble() const {
  return std::strtod(text.c_str(), nullptr);
}

std::optional<Json> ParseJson(std::string_view text) {
  return Reader(text).Read();
}

std::optional<std::string> VectorsDirectory() {
  const char* configured = std::getenv("DRAKKAR_VECTORS");
  std::string directory = configured ? configured : "../shared/vectors";
  if (!std::filesystem::is_directory(directory)) return std::nullopt;
  return directory;
}

std::string ReadTextFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::abort();
  }
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

Json ReadJsonFile(const std::string& path) {
  std::optional<Json> json = ParseJson(ReadTextFile(path));
  if (!json) {
    std::fprintf(stderr, "%s is not valid JSON\n", path.c_str());
    std::abort();
  }
  return *std::move(json);
}

}  // namespace drakkar::testing

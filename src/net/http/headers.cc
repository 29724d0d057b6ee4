#include "net/http/headers.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::net {
namespace {

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

bool IsTokenChar(char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsValueChar(char c) {
  const auto u = static_cast<unsigned char>(c);
  return u == '\t' || (u >= 0x20 && u != 0x7f);
}

}  // namespace

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && Lower(a[i]) != Lower(b[i])) return false;
  }
  return true;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenChar);
}

bool IsHeaderValue(std::string_view text) {
  return std::all_of(text.begin(), text.end(), IsValueChar);
}

std::string CleanHeaderValue(std::string_view text) {
  std::string clean(text);
  for (char& c : clean) {
    if (!IsValueChar(c)) c = ' ';
  }
  return clean;
}

bool IsConnectionHeader(std::string_view name) {
  for (std::string_view own :
       {"connection", "transfer-encoding", "keep-alive", "upgrade", "proxy-connection"}) {
    if (EqualsIgnoreCase(name, own)) return true;
  }
  return false;
}

void Headers::Add(std::string name, std::string value) {
  fields_.emplace_back(std::move(name), std::move(value));
}

void Headers::Set(std::string name, std::string value) {
  Remove(name);
  Add(std::move(name), std::move(value));
}

void Headers::Remove(std::string_view name) {
  std::erase_if(fields_, [&](const Field& field) { return EqualsIgnoreCase(field.first, name); });
}

const std::string* Headers::Find(std::string_view name) const {
  for (const Field& field : fields_) {
    if (EqualsIgnoreCase(field.first, name)) return &field.second;
  }
  return nullptr;
}

std::string_view Headers::Get(std::string_view name) const {
  const std::string* value = Find(name);
  return value ? std::string_view(*value) : std::string_view();
}

bool Headers::HasToken(std::string_view name, std::string_view token) const {
  for (const Field& field : fields_) {
    if (!EqualsIgnoreCase(field.first, name)) continue;
    for (std::string_view part : Split(field.second, ',')) {
      if (EqualsIgnoreCase(Trim(part), token)) return true;
    }
  }
  return false;
}

std::size_t Headers::Count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(fields_.begin(), fields_.end(),
                    [&](const Field& field) { return EqualsIgnoreCase(field.first, name); }));
}

}  // namespace drakkar::net

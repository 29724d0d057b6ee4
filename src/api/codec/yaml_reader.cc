#include "api/codec/yaml_reader.h"

#include <libfyaml.h>

#include <cmath>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "api/codec/yaml_scalar.h"
#include "api/codec/yaml_token.h"
#include "api/json/writer.h"
#include "api/tree/freeze.h"
#include "base/hash/base64.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

struct ParserDeleter {
  void operator()(fy_parser* parser) const { fy_parser_destroy(parser); }
};
struct DiagDeleter {
  void operator()(fy_diag* diag) const { fy_diag_destroy(diag); }
};

// A parser event, freed by the destructor.
class Event {
 public:
  Event(fy_parser* parser, fy_event* event) : parser_(parser), event_(event) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  Event(Event&& other) noexcept
      : parser_(other.parser_), event_(std::exchange(other.event_, nullptr)) {}
  ~Event() {
    if (event_ != nullptr) fy_parser_event_free(parser_, event_);
  }
  explicit operator bool() const { return event_ != nullptr; }
  const fy_event* operator->() const { return event_; }

 private:
  fy_parser* parser_;
  fy_event* event_;
};

class Reader {
 public:
  Reader(std::string_view text, const YamlReadOptions& options) : text_(text), options_(options) {
    fy_diag_cfg diag_config;
    fy_diag_cfg_default(&diag_config);
    diag_config.fp = nullptr;
    diag_config.colorize = false;
    diag_.reset(fy_diag_create(&diag_config));
    fy_diag_set_collect_errors(diag_.get(), true);
    fy_parse_cfg config = {};
    config.flags = static_cast<fy_parse_cfg_flags>(FYPCF_QUIET | FYPCF_COLLECT_DIAG |
                                                   FYPCF_DISABLE_DEPTH_LIMIT | FYPCF_JSON_NONE);
    config.diag = diag_.get();
    parser_.reset(fy_parser_create(&config));
    fy_parser_set_string(parser_.get(), text.data(), text.size());
  }

  Result<std::vector<TreePtr>> Read() {
    std::vector<TreePtr> documents;
    while (true) {
      const Event event = Next();
      if (!event) return ParserError();
      if (event->type == FYET_STREAM_END) return documents;
      if (event->type != FYET_DOCUMENT_START) continue;
      arena_ = std::make_unique<Arena>();
      anchors_.clear();
      const Event root = Next();
      if (!root) return ParserError();
      const bool has_content = root->type != FYET_SCALAR ||
                               fy_token_scalar_style(root->scalar.value) != FYSS_PLAIN ||
                               !YamlTokenText(root->scalar.value).empty();
      ASSIGN_OR_RETURN(const Node node, ReadNode(root, options_.max_depth));
      if (!has_content) continue;
      if (documents.size() >= options_.max_documents) {
        return InvalidArgument(StrCat("more than ", options_.max_documents, " documents"));
      }
      documents.push_back(FreezeNode(node));
    }
  }

 private:
  struct Anchor {
    Node node;
    std::size_t weight;
  };

  Event Next() { return Event(parser_.get(), fy_parser_parse(parser_.get())); }

  Error ParserError() const {
    void* iterator = nullptr;
    const fy_diag_error* error = fy_diag_errors_iterate(diag_.get(), &iterator);
    if (error == nullptr) return InvalidArgument("the text is not valid YAML");
    return InvalidArgument(
        StrCat(error->msg, " at line ", error->line, ", column ", error->column));
  }

  static Error At(std::string message, fy_token* token) {
    const fy_mark* mark = token == nullptr ? nullptr : fy_token_start_mark(token);
    if (mark == nullptr) return InvalidArgument(std::move(message));
    return InvalidArgument(
        StrCat(message, " at line ", mark->line + 1, ", column ", mark->column + 1));
  }

  // As Kubernetes words it in responses.
  static std::string DuplicateText(std::string_view name, fy_token* token) {
    const fy_mark* mark = token == nullptr ? nullptr : fy_token_start_mark(token);
    std::string text = StrCat("key ", Quote(name), " already set in map");
    return mark == nullptr ? text : StrCat("line ", mark->line + 1, ": ", text);
  }

  // Counts what is added to the tree.
  Result<void> Weigh(std::size_t bytes, fy_token* token) {
    weight_ += bytes;
    if (weight_ <= options_.max_expanded_bytes) return Ok();
    return At(StrCat("the documents have more than ", options_.max_expanded_bytes, " bytes"),
              token);
  }

  Result<Node> ReadNode(const Event& event, int depth) {
    const std::size_t before = weight_;
    fy_token* anchor = nullptr;
    Node node;
    switch (event->type) {
      case FYET_SCALAR: {
        anchor = event->scalar.anchor;
        ASSIGN_OR_RETURN(node, ReadScalar(event->scalar));
        RETURN_IF_ERROR(Weigh(sizeof(Member) + (node.kind >= ValueKind::kString ? node.size : 0),
                              event->scalar.value));
        break;
      }
      case FYET_ALIAS: {
        const std::string name(YamlTokenText(event->alias.anchor));
        const auto found = anchors_.find(name);
        if (found == anchors_.end())
          return At("unknown anchor " + Quote(name), event->alias.anchor);
        RETURN_IF_ERROR(Weigh(found->second.weight, event->alias.anchor));
        return found->second.node;
      }
      case FYET_SEQUENCE_START: {
        anchor = event->sequence_start.anchor;
        if (depth <= 0) return At("exceeded max depth", event->sequence_start.sequence_start);
        ASSIGN_OR_RETURN(node, ReadSequence(depth - 1));
        break;
      }
      case FYET_MAPPING_START: {
        anchor = event->mapping_start.anchor;
        if (depth <= 0) return At("exceeded max depth", event->mapping_start.mapping_start);
        ASSIGN_OR_RETURN(node, ReadMapping(depth - 1));
        break;
      }
      default:
        return InvalidArgument("the text is not valid YAML");
    }
    // Not earlier: an alias cannot refer to a node that contains it.
    if (anchor != nullptr) {
      anchors_[std::string(YamlTokenText(anchor))] = {node, weight_ - before + sizeof(Member)};
    }
    return node;
  }

  // The text of a scalar, in the arena.
  std::string_view ScalarText(fy_token* token) {
    std::string decoded;
    return arena_->CopyText(YamlScalarText(token, text_, decoded));
  }

  Result<Node> ReadScalar(const fy_event_scalar_data& scalar) {
    const std::string_view text = ScalarText(scalar.value);
    const bool plain = scalar.value == nullptr || fy_token_scalar_style(scalar.value) == FYSS_PLAIN;
    const std::string_view tag = YamlTokenText(scalar.tag);
    constexpr std::string_view kStandard = "tag:yaml.org,2002:";
    if (tag.empty()) {
      if (!plain) return TextNode(text);
    } else if (tag == "tag:yaml.org,2002:binary") {
      auto bytes = Base64Decode(text);
      if (!bytes.ok()) return At(bytes.error().message, scalar.value);
      return TextNode(arena_->CopyText(*bytes));
    } else if (tag == "tag:yaml.org,2002:str" || !tag.starts_with(kStandard)) {
      return TextNode(text);  // custom tags have no meaning in JSON
    }
    const Node node = ResolveYamlScalar(text);
    if (node.kind == ValueKind::kDouble && !std::isfinite(node.number)) {
      return At(StrCat("JSON has no number ", text), scalar.value);
    }
    return node;
  }

  Result<Node> ReadSequence(int depth) {
    std::vector<Node> elements;
    while (true) {
      const Event event = Next();
      if (!event) return ParserError();
      if (event->type == FYET_SEQUENCE_END) break;
      ASSIGN_OR_RETURN(const Node element, ReadNode(event, depth));
      elements.push_back(element);
    }
    Node* copy = arena_->AllocateArray<Node>(elements.size());
    std::copy(elements.begin(), elements.end(), copy);
    return ArrayNode(copy, elements.size());
  }

  // The text a key has in JSON.
  Result<std::string_view> KeyText(const Node& key, fy_token* token) {
    switch (key.kind) {
      case ValueKind::kString:
        return std::string_view(key.text, key.size);
      case ValueKind::kBool:
      case ValueKind::kInt:
      case ValueKind::kDouble:
        return arena_->CopyText(WriteJson(Value(&key)));
      default:
        return At("only texts, numbers and booleans can be keys", token);
    }
  }

  Result<Node> ReadMapping(int depth) {
    std::vector<Member> members;
    std::vector<Node> merged;
    std::unordered_set<std::string_view> names;
    while (true) {
      const Event event = Next();
      if (!event) return ParserError();
      if (event->type == FYET_MAPPING_END) break;
      fy_token* token = event->type == FYET_SCALAR ? event->scalar.value : nullptr;
      const bool is_merge = token != nullptr && fy_token_scalar_style(token) == FYSS_PLAIN &&
                            YamlTokenText(token) == "<<";
      ASSIGN_OR_RETURN(const Node key, ReadNode(event, depth));
      ASSIGN_OR_RETURN(const std::string_view name, KeyText(key, token));
      const Event value_event = Next();
      if (!value_event) return ParserError();
      ASSIGN_OR_RETURN(const Node value, ReadNode(value_event, depth));
      if (is_merge) {
        RETURN_IF_ERROR(CollectMerged(value, merged, token));
        continue;
      }
      if (!names.insert(name).second) {
        if (options_.duplicates == nullptr) {
          return At(StrCat("key ", Quote(name), " already set in map"), token);
        }
        if (options_.duplicates->size() < YamlReadOptions::kMaxDuplicates) {
          options_.duplicates->push_back(DuplicateText(name, token));
        }
        std::erase_if(members, [&](const Member& each) { return each.key->view() == name; });
      }
      members.push_back({arena_->MakeKey(name), value});
    }
    // Explicit keys take precedence over merged ones, and earlier merges over later ones.
    for (const Node& source : merged) {
      for (std::uint32_t i = 0; i < source.size; ++i) {
        if (names.insert(source.members[i].key->view()).second) {
          members.push_back(source.members[i]);
        }
      }
    }
    Member* copy = arena_->AllocateArray<Member>(members.size());
    std::copy(members.begin(), members.end(), copy);
    return ObjectNode(copy, members.size());
  }

  static Result<void> CollectMerged(const Node& value, std::vector<Node>& merged, fy_token* token) {
    if (value.kind == ValueKind::kObject) {
      merged.push_back(value);
      return Ok();
    }
    bool good = value.kind == ValueKind::kArray;
    for (std::uint32_t i = 0; good && i < value.size; ++i) {
      good = value.elements[i].kind == ValueKind::kObject;
      if (good) merged.push_back(value.elements[i]);
    }
    if (good) return Ok();
    return At("map merge requires map or sequence of maps as the value", token);
  }

  const std::string_view text_;
  const YamlReadOptions& options_;
  std::unique_ptr<fy_diag, DiagDeleter> diag_;
  std::unique_ptr<fy_parser, ParserDeleter> parser_;
  std::unique_ptr<Arena> arena_;
  std::unordered_map<std::string, Anchor> anchors_;
  std::size_t weight_ = 0;
};

// Whether a line begins with '%', which makes it a directive. libfyaml can loop forever on a
// malformed one, and no manifest needs directives. Line breaks are those of YAML 1.1.
bool HasDirective(std::string_view text) {
  for (std::size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
    const std::string_view before = text.substr(0, at);
    if (before.empty() || before.ends_with('\n') || before.ends_with('\r') ||
        before.ends_with("\xc2\x85") || before.ends_with("\xe2\x80\xa8") ||
        before.ends_with("\xe2\x80\xa9") || before.ends_with("\xef\xbb\xbf")) {
      return true;
    }
  }
  return false;
}

}  // namespace

Result<std::vector<TreePtr>> ParseYaml(std::string_view text, const YamlReadOptions& options) {
  if (text.size() > options.max_size_bytes) {
    return InvalidArgument(StrCat("the YAML text has ", text.size(),
                                  " bytes, more than the limit of ", options.max_size_bytes));
  }
  if (text.empty()) return std::vector<TreePtr>();
  if (HasDirective(text)) {
    return InvalidArgument(
        "YAML directives (lines that begin with %) are not supported: remove them");
  }
  return Reader(text, options).Read();
}

}  // namespace drakkar::api

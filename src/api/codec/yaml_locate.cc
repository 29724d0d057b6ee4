#include "api/codec/yaml_locate.h"

#include <libfyaml.h>

#include <memory>

#include "api/codec/yaml_token.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

struct ParserDeleter {
  void operator()(fy_parser* parser) const { fy_parser_destroy(parser); }
};
struct DiagDeleter {
  void operator()(fy_diag* diag) const { fy_diag_destroy(diag); }
};

// Walks the events of a document along a path.
class Walker {
 public:
  explicit Walker(std::string_view text) : document_(text) {
    // Errors are collected so that they are not printed; nobody reads them.
    fy_diag_cfg diag_config;
    fy_diag_cfg_default(&diag_config);
    diag_config.fp = nullptr;
    diag_.reset(fy_diag_create(&diag_config));
    fy_diag_set_collect_errors(diag_.get(), true);
    fy_parse_cfg config = {};
    config.flags =
        static_cast<fy_parse_cfg_flags>(FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_JSON_NONE);
    config.diag = diag_.get();
    parser_.reset(fy_parser_create(&config));
    fy_parser_set_string(parser_.get(), text.data(), text.size());
  }

  std::optional<YamlPosition> Find(const std::vector<std::string>& path) {
    do {
      if (!Next()) return std::nullopt;
    } while (type_ != FYET_DOCUMENT_START);
    if (!Next()) return std::nullopt;
    YamlPosition found = position_;
    for (const std::string& name : path) {
      if (type_ == FYET_MAPPING_START) {
        if (!EnterMember(name, found)) return std::nullopt;
      } else if (type_ == FYET_SEQUENCE_START) {
        const auto index = ParseInt64(name);
        if (!index || *index < 0 || !EnterElement(*index)) return std::nullopt;
        found = position_;
      } else {
        return std::nullopt;
      }
    }
    return found;
  }

 private:
  // Reads an event: its kind, where it begins, and the text of a scalar.
  bool Next() {
    fy_event* event = fy_parser_parse(parser_.get());
    if (event == nullptr) return false;
    type_ = event->type;
    fy_token* token = nullptr;
    text_.clear();
    if (type_ == FYET_SCALAR) {
      token = event->scalar.value;
      std::string decoded;
      text_ = YamlScalarText(token, document_, decoded);
    } else if (type_ == FYET_MAPPING_START) {
      token = event->mapping_start.mapping_start;
    } else if (type_ == FYET_SEQUENCE_START) {
      token = event->sequence_start.sequence_start;
    } else if (type_ == FYET_ALIAS) {
      token = event->alias.anchor;
    }
    const fy_mark* mark = token == nullptr ? nullptr : fy_token_start_mark(token);
    if (mark != nullptr) position_ = {mark->line + 1, mark->column + 1};
    fy_parser_event_free(parser_.get(), event);
    return true;
  }

  // Skips the node whose first event has been read.
  bool Skip() {
    int depth = 0;
    while (true) {
      if (type_ == FYET_MAPPING_START || type_ == FYET_SEQUENCE_START) ++depth;
      if (type_ == FYET_MAPPING_END || type_ == FYET_SEQUENCE_END) --depth;
      if (depth <= 0) return true;
      if (!Next()) return false;
    }
  }

  bool EnterMember(const std::string& name, YamlPosition& key) {
    while (Next() && type_ != FYET_MAPPING_END) {
      const bool is_it = type_ == FYET_SCALAR && text_ == name;
      key = position_;
      if (!Skip() || !Next()) return false;
      if (is_it) return true;
      if (!Skip()) return false;
    }
    return false;
  }

  bool EnterElement(std::int64_t index) {
    while (Next() && type_ != FYET_SEQUENCE_END) {
      if (index-- == 0) return true;
      if (!Skip()) return false;
    }
    return false;
  }

  const std::string_view document_;
  std::unique_ptr<fy_diag, DiagDeleter> diag_;
  std::unique_ptr<fy_parser, ParserDeleter> parser_;
  fy_event_type type_ = FYET_NONE;
  YamlPosition position_;
  std::string text_;
};

}  // namespace

std::optional<YamlPosition> LocateYaml(std::string_view text,
                                       const std::vector<std::string>& path) {
  if (text.empty()) return std::nullopt;
  return Walker(text).Find(path);
}

}  // namespace drakkar::api

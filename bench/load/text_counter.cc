#include "bench/load/text_counter.h"

#include <cstring>

namespace drakkar::load {

void TextCounter::Feed(std::string_view bytes) {
  if (text_.empty() || bytes.empty()) return;
  const std::size_t keep = text_.size() - 1;
  // An occurrence that starts in the previous bytes ends within the first few of these.
  std::string seam = tail_;
  seam.append(bytes.substr(0, keep));
  Count(seam);
  Count(bytes);
  if (bytes.size() >= keep) {
    tail_ = bytes.substr(bytes.size() - keep);
  } else {
    tail_.append(bytes);
    if (tail_.size() > keep) tail_.erase(0, tail_.size() - keep);
  }
}

void TextCounter::Count(std::string_view bytes) {
  // memmem skips by the length of the text; find checks every candidate byte.
  while (const void* found = ::memmem(bytes.data(), bytes.size(), text_.data(), text_.size())) {
    ++count_;
    bytes.remove_prefix(static_cast<std::size_t>(static_cast<const char*>(found) - bytes.data()) +
                        text_.size());
  }
}

}  // namespace drakkar::load

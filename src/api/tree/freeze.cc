#include "api/tree/freeze.h"

#include <cstring>

#include "base/exec/work_budget.h"
#include "base/result/check.h"

namespace drakkar::api {
namespace {

constexpr std::size_t kFirstChunkBytes = 8 * 1024;
constexpr std::size_t kMaxChunkBytes = 256 * 1024;

// What copying costs in steps of the work budget.
constexpr std::size_t kStructBytesPerStep = 8;
constexpr std::size_t kTextBytesPerStep = 4;

struct Sizes {
  std::size_t structs = 0;  // nodes, members and keys, all multiples of eight
  std::size_t text = 0;
};

void Measure(const Node& node, Sizes& sizes) {
  switch (node.kind) {
    case ValueKind::kString:
    case ValueKind::kRaw:
      sizes.text += node.size;
      return;
    case ValueKind::kArray:
      for (std::uint32_t i = 0; i < node.size; ++i) {
        const Node& element = node.elements[i];
        if (element.kind == ValueKind::kAbsent) continue;
        sizes.structs += sizeof(Node);
        if (element.kind > ValueKind::kDouble) Measure(element, sizes);
      }
      return;
    case ValueKind::kObject:
      for (std::uint32_t i = 0; i < node.size; ++i) {
        const Member& member = node.members[i];
        if (member.value.kind == ValueKind::kAbsent) continue;
        sizes.structs += sizeof(Member);
        if (member.key->id == 0) {
          sizes.structs += sizeof(Key);
          sizes.text += member.key->size;
        }
        if (member.value.kind > ValueKind::kDouble) Measure(member.value, sizes);
      }
      return;
    default:
      return;
  }
}

class Filler {
 public:
  Filler(char* structs, char* text) : structs_(structs), text_(text) {}

  Node Fill(const Node& from) {
    switch (from.kind) {
      case ValueKind::kString:
      case ValueKind::kRaw: {
        Node to = from;
        to.text = CopyText(from.text, from.size);
        return to;
      }
      case ValueKind::kArray:
        return FillArray(from);
      case ValueKind::kObject:
        return FillObject(from);
      default:
        return from;
    }
  }

 private:
  const char* CopyText(const char* text, std::size_t size) {
    char* at = text_;
    if (size != 0) std::memcpy(at, text, size);
    text_ += size;
    return at;
  }

  template <typename T>
  T* Take(std::size_t count) {
    T* at = reinterpret_cast<T*>(structs_);
    structs_ += count * sizeof(T);
    return at;
  }

  Node FillArray(const Node& from) {
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < from.size; ++i) {
      count += from.elements[i].kind != ValueKind::kAbsent;
    }
    Node* elements = Take<Node>(count);
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < from.size; ++i) {
      if (from.elements[i].kind == ValueKind::kAbsent) continue;
      elements[at++] = Fill(from.elements[i]);
    }
    return ArrayNode(elements, count);
  }

  Node FillObject(const Node& from) {
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < from.size; ++i) {
      count += from.members[i].value.kind != ValueKind::kAbsent;
    }
    Member* members = Take<Member>(count);
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < from.size; ++i) {
      const Member& member = from.members[i];
      if (member.value.kind == ValueKind::kAbsent) continue;
      const Key* key = member.key;
      if (key->id == 0) {
        Key* copy = Take<Key>(1);
        *copy = {0, key->size, CopyText(key->text, key->size)};
        key = copy;
      }
      Member& to = members[at++];
      to.key = key;
      to.value = Fill(member.value);
    }
    return ObjectNode(members, count);
  }

  char* structs_;
  char* text_;
};

// First chunks kept per thread: every write creates and drops a few arenas. Disabled under
// sanitizers, which could otherwise not detect pointers that outlive their arena.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kMaxSpareChunks = 0;
#else
constexpr std::size_t kMaxSpareChunks = 4;
#endif

struct SpareChunks {
  std::unique_ptr<char[]> chunks[kMaxSpareChunks + 1];
  std::size_t count = 0;
  ~SpareChunks();
};
// Arenas may be destroyed after the thread's spare chunks.
constinit thread_local bool spares_are_gone = false;
thread_local SpareChunks spares;

SpareChunks::~SpareChunks() {
  spares_are_gone = true;
}

}  // namespace

Arena::~Arena() {
  if (chunks_.empty() || first_is_large_ || spares_are_gone) return;
  if (spares.count < kMaxSpareChunks) spares.chunks[spares.count++] = std::move(chunks_.front());
}

void* Arena::AllocateSlow(std::size_t size_bytes) {
  if (chunks_.empty() && size_bytes <= kFirstChunkBytes && !spares_are_gone && spares.count > 0) {
    chunks_.push_back(std::move(spares.chunks[--spares.count]));
    next_ = chunks_.back().get() + size_bytes;
    left_ = kFirstChunkBytes - size_bytes;
    return chunks_.back().get();
  }
  if (chunks_.empty()) first_is_large_ = size_bytes > kFirstChunkBytes;
  std::size_t chunk = kFirstChunkBytes << std::min<std::size_t>(chunks_.size(), 5);
  chunk = std::max(std::min(chunk, kMaxChunkBytes), size_bytes);
  // new[] of char is aligned for any fundamental type; default-initialised on purpose.
  chunks_.push_back(std::unique_ptr<char[]>(new char[chunk]));
  next_ = chunks_.back().get() + size_bytes;
  left_ = chunk - size_bytes;
  return chunks_.back().get();
}

std::string_view Arena::CopyText(std::string_view text) {
  if (text.empty()) return {};
  char* at = static_cast<char*>(Allocate(text.size()));
  std::memcpy(at, text.data(), text.size());
  return {at, text.size()};
}

const Key* Arena::MakeKey(std::string_view name) {
  if (const Key* known = FindKey(name)) return known;
  Key* key = AllocateArray<Key>(1);
  *key = {0, static_cast<std::uint32_t>(name.size()), name.data()};
  return key;
}

TreePtr FreezeNode(const Node& root) {
  Sizes sizes;
  Measure(root, sizes);
  const std::size_t total = sizes.structs + sizes.text;
  WorkBudget::Charge((sizes.structs + sizes.text / kTextBytesPerStep) / kStructBytesPerStep);
  std::unique_ptr<char[]> block(new char[total]);
  Filler filler(block.get(), block.get() + sizes.structs);
  const Node frozen = filler.Fill(root);
  return std::make_shared<const Tree>(std::move(block), total, frozen);
}

TreePtr CopyTree(Value value) {
  return FreezeNode(*value.node());
}

}  // namespace drakkar::api

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace drakkar::cel {

// Memory for the results of one evaluation. Reset discards them but keeps the blocks, so that a
// warm arena does not allocate. The cost limit bounds how much an evaluation can request.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { Reset(); }

  void Reset() {
    if (!cleanups_.empty()) {
      for (std::size_t i = cleanups_.size(); i > 0; --i)
        cleanups_[i - 1].destroy(cleanups_[i - 1].object);
      cleanups_.clear();
    }
    block_ = 0;
    used_ = 0;
  }

  void* Allocate(std::size_t size) {
    size = (size + 15) & ~std::size_t{15};
    if (block_ < blocks_.size() && used_ + size <= blocks_[block_].size) {
      void* memory = blocks_[block_].memory.get() + used_;
      used_ += size;
      return memory;
    }
    return AllocateSlow(size);
  }

  template <typename T>
  T* AllocateArray(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    return static_cast<T*>(Allocate(count * sizeof(T)));
  }

  template <typename T, typename... Args>
  T* New(Args&&... args) {
    T* object = new (Allocate(sizeof(T))) T(std::forward<Args>(args)...);
    if constexpr (!std::is_trivially_destructible_v<T>) {
      cleanups_.push_back({object, [](void* memory) { static_cast<T*>(memory)->~T(); }});
    }
    return object;
  }

 private:
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    std::size_t size;
  };
  struct Cleanup {
    void* object;
    void (*destroy)(void*);
  };

  void* AllocateSlow(std::size_t size);

  std::vector<Block> blocks_;
  std::vector<Cleanup> cleanups_;
  std::size_t block_ = 0;
  std::size_t used_ = 0;
};

}  // namespace drakkar::cel

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace drakkar {

// Incremental SHA-256 (FIPS 180-4). For content digests; keys and signatures use net/tls.
class Sha256 {
 public:
  using Digest = std::array<std::uint8_t, 32>;

  Sha256();
  void Update(std::string_view bytes);
  // Ends the message; nothing may be added afterwards.
  Digest Finish();

 private:
  void Compress(const std::uint8_t* block);

  std::array<std::uint32_t, 8> state_;
  std::array<std::uint8_t, 64> block_;
  std::size_t block_size_ = 0;
  std::uint64_t total_bytes_ = 0;
};

std::string HexDigest(const Sha256::Digest& digest);  // 64 lower-case hexadecimal digits
std::string Sha256Hex(std::string_view bytes);

}  // namespace drakkar

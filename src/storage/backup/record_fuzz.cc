#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result/check.h"
#include "storage/backup/record.h"
#include "storage/sqlite/salvage.h"

// The first byte chooses the decoder.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::storage;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 4) {
    case 0: {
      BackupRecord record;
      const auto taken = DecodeBackupRecord(bytes, record);
      if (taken.ok() && record.entry) {
        CHECK(EncodeBackupEntry(*record.entry) == bytes.substr(0, *taken));
      }
      break;
    }
    case 1:
      if (const auto page = DecodeBackupPage(bytes); page.ok()) {
        CHECK(DecodeBackupPage(EncodeBackupPage(*page)).ok());
      }
      break;
    case 2:
      if (const auto slice = DecodeVerifyResult(bytes); slice.ok()) {
        CHECK(DecodeVerifyResult(EncodeVerifyResult(*slice))->rows == slice->rows);
      }
      break;
    default:
      SalvageRows(bytes, bytes.substr(bytes.size() / 2),
                  [](const Row& row) { CHECK(!row.key.empty() && row.create_revision >= 1); });
  }
  return 0;
}

// Fuzzes the JSON that a C driver passes in and the claim that it gets.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "api/json/reader.h"
#include "base/result/check.h"
#include "sdk/driver/c/handles.h"
#include "sdk/driver/slices/desired_pool.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto tree = api::ParseJson(text.c_str());
  const bool is_object = tree.ok() && (*tree)->root().is_object();
  // Every entry agrees on the result, and error messages are terminated.
  drakkar_error error;
  const auto check = [&](int answer) {
    CHECK((answer == 0) == is_object);
    if (answer != 0)
      CHECK(std::memchr(error.message, 0, sizeof(error.message)) != nullptr &&
            error.message[0] != 0);
  };
  drakkar_claim_status* status = drakkar_claim_status_new();
  CHECK(drakkar_claim_status_add_device(status, "pool", "device", nullptr) == 0);
  check(drakkar_claim_status_set_data(status, text.c_str(), &error));
  drakkar_claim_status_free(status);
  drakkar_resources* resources = drakkar_resources_new();
  CHECK(drakkar_resources_add_device(resources, "pool", "device") == 0);
  check(drakkar_resources_set_json(resources, "pool", "device", text.c_str(), &error));
  static_cast<void>(driver::MakeDesiredPools(resources->resources, /*on_node=*/true).ok());
  check(drakkar_resources_set_node_selector(resources, "pool", text.c_str(), &error));
  static_cast<void>(driver::MakeDesiredPools(resources->resources, /*on_node=*/false).ok());
  drakkar_resources_free(resources);
  if (!is_object) return 0;
  const drakkar_claim claim(api::Object(*tree), "driver.example.com");
  CHECK(drakkar_claim_json(&claim) != nullptr && drakkar_claim_name(&claim) != nullptr);
  for (const auto& device : claim.devices)
    CHECK(device.request != nullptr && device.pool != nullptr && device.device != nullptr);
  return 0;
}

#pragma once

// The types behind the handles of drakkar_driver.h, and error handling.

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/meta/object.h"
#include "base/result/result.h"
#include "rpc/nri/nri.h"
#include "sdk/driver/c/drakkar_driver.h"
#include "sdk/driver/plugin.h"
#include "sdk/driver/slices/resources.h"
#include "sdk/driver/status/claim_status.h"

struct drakkar_claim {
  // Includes only devices of `driver_name`.
  drakkar_claim(const drakkar::api::Object& claim, std::string_view driver_name);
  drakkar_claim(const drakkar_claim&) = delete;

  std::string namespace_name, name, uid, json;
  std::deque<std::string> texts;  // owns the strings that `devices` points to
  std::vector<drakkar_allocated_device> devices;
  std::vector<std::string> pod_uids;
};

struct drakkar_prepare_result {
  std::vector<drakkar::driver::PreparedDevice> devices;
};

struct drakkar_pod {
  drakkar::rpc::NriPodSandbox pod;
};

struct drakkar_claim_status {
  std::vector<drakkar::driver::AllocatedDeviceStatus> devices;
};

struct drakkar_resources {
  drakkar::driver::DriverResources resources;

  // Returns null if it does not exist.
  drakkar::driver::Device* Find(const char* pool, const char* device);
  // The single slice of a pool; creates both if needed.
  drakkar::driver::Slice& SliceOf(const char* pool);
};

namespace drakkar::driver::c {

inline int Fail(drakkar_error* error, std::string_view message) {
  if (error != nullptr) {
    const std::size_t size = std::min<std::size_t>(message.size(), DRAKKAR_ERROR_BYTES - 1);
    std::memcpy(error->message, message.data(), size);
    error->message[size] = 0;
  }
  return -1;
}

// What a callback wrote into its error.
inline std::string ErrorText(const drakkar_error& error) {
  const std::size_t size = ::strnlen(error.message, DRAKKAR_ERROR_BYTES);
  return size == 0 ? "the driver returned no error message" : std::string(error.message, size);
}

inline int Answer(const Result<void>& result, drakkar_error* error) {
  return result.ok() ? 0 : Fail(error, result.error().message);
}

// Runs `body` and turns exceptions (only memory exhaustion can cause one) into an error.
template <typename Body>
int Guarded(drakkar_error* error, Body body) noexcept {
  try {
    return body();
  } catch (const std::exception& exception) {
    return Fail(error, exception.what());
  } catch (...) {
    return Fail(error, "unknown error");
  }
}

// Treats NULL as "".
inline std::string Text(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

// Returns false if the list or one of its elements is null.
inline bool ReadTexts(const char* const* values, std::size_t count, std::vector<std::string>& out) {
  if (values == nullptr && count > 0) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (values[i] == nullptr) return false;
    out.emplace_back(values[i]);
  }
  return true;
}

// Converts attribute values from C. Each calls `set` with the value, or returns -1.
template <typename Set>
int WithText(const char* value, Set set) {
  return value == nullptr ? -1 : set(metadata::AttributeValue(std::string(value)));
}
template <typename Set>
int WithVersion(const char* value, Set set) {
  return value == nullptr ? -1 : set(metadata::AttributeValue(metadata::Version{value}));
}
template <typename Set>
int WithTexts(const char* const* values, std::size_t count, Set set) {
  std::vector<std::string> texts;
  return ReadTexts(values, count, texts) ? set(metadata::AttributeValue(std::move(texts))) : -1;
}
template <typename Set>
int WithVersions(const char* const* values, std::size_t count, Set set) {
  std::vector<std::string> texts;
  if (!ReadTexts(values, count, texts)) return -1;
  std::vector<metadata::Version> versions;
  for (std::string& text : texts) versions.push_back({std::move(text)});
  return set(metadata::AttributeValue(std::move(versions)));
}
template <typename Set>
int WithInts(const std::int64_t* values, std::size_t count, Set set) {
  if (values == nullptr && count > 0) return -1;
  return set(metadata::AttributeValue(std::vector<std::int64_t>(values, values + count)));
}
template <typename Set>
int WithBools(const int* values, std::size_t count, Set set) {
  if (values == nullptr && count > 0) return -1;
  std::vector<bool> bools;
  for (std::size_t i = 0; i < count; ++i) bools.push_back(values[i] != 0);
  return set(metadata::AttributeValue(std::move(bools)));
}

// Returns false if an address is null.
inline bool ReadNetwork(const char* interface_name, const char* const* ips, std::size_t ip_count,
                        const char* hardware_address, metadata::NetworkDeviceData& out) {
  out.interface_name = Text(interface_name);
  out.hardware_address = Text(hardware_address);
  return ReadTexts(ips, ip_count, out.ips);
}

}  // namespace drakkar::driver::c

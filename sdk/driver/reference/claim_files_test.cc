#include "sdk/driver/reference/claim_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/testing/memory_file_system.h"
#include "base/text/text.h"

namespace drakkar::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ClaimFilesTest : public ::testing::Test {
 protected:
  ClaimFilesTest() {
    EXPECT_TRUE(files_.MakeDirectories("/cdi", 0755).ok());
    for (const char* name : {"a", "b"}) devices_[name].device.name = name;
  }
  static std::string Allocated(std::string_view device, std::string_view more = "",
                               std::string_view request = "r") {
    return StrCat(R"({"request":")", request, R"(","driver":"d.example.com","pool":"p","device":")",
                  device, "\"", more, "}");
  }
  Result<std::vector<PreparedDevice>> Prepare(const std::string& uid, const std::string& results) {
    const api::Object claim(*api::ParseJson(
        StrCat(R"({"metadata":{"namespace":"ns","name":"c","uid":")", uid,
               R"("},"status":{"allocation":{"devices":{"results":[)", results, "]}}}}")));
    return claims_.Prepare(claim, "p", devices_);
  }
  std::string ErrorOf(const std::string& uid, const std::string& results) {
    const auto prepared = Prepare(uid, results);
    return prepared.ok() ? "" : prepared.error().message;
  }
  // "uid namespace/name" of each prepared claim.
  std::vector<std::string> Prepared() {
    std::vector<std::string> list;
    const auto prepared = claims_.Prepared();
    EXPECT_TRUE(prepared.ok());
    for (const rpc::ClaimReference& each : *prepared) {
      list.push_back(StrCat(each.uid, " ", each.namespace_name, "/", each.name));
    }
    return list;
  }
  std::vector<std::string> DeviceDirectories() { return *files_.ListDirectory("/home/devices"); }

  MemoryFileSystem files_;
  ClaimFiles claims_{{.files = files_,
                      .driver_name = "d.example.com",
                      .directory = "/home",
                      .cdi_directory = "/cdi"}};
  ClaimFiles::Devices devices_;
};

TEST_F(ClaimFilesTest, AUidMustBeUsableAsAFileName) {
  for (const std::string& good : {std::string("u"), std::string("aZ09-"), std::string(128, 'u')}) {
    EXPECT_EQ(ErrorOf(good, Allocated("a")), "") << good;
    EXPECT_TRUE(claims_.Unprepare(good).ok());
  }
  EXPECT_THAT(*files_.ListDirectory("/cdi"), IsEmpty());
  for (const std::string& bad :
       {std::string(), std::string("-u"), std::string("u/v"), std::string("u.v"),
        std::string("u_v"), std::string("u:"), std::string("u@"), std::string("u["),
        std::string("u`"), std::string("u{"), std::string(129, 'u')}) {
    EXPECT_THAT(ErrorOf(bad, Allocated("a")), HasSubstr("is not a UID")) << bad;
    EXPECT_TRUE(claims_.Unprepare(bad).ok()) << "it cannot have been prepared";
  }
}

TEST_F(ClaimFilesTest, OnlyDevicesOfItsPoolCanBePrepared) {
  EXPECT_THAT(ErrorOf("u", Allocated("none")), HasSubstr("device none does not exist"));
  EXPECT_THAT(ErrorOf("u", R"({"request":"r","driver":"d.example.com","pool":"q","device":"a"})"),
              HasSubstr("is in pool q, but this driver serves pool p"));
  EXPECT_THAT(ErrorOf("u", R"({"request":"r","driver":"other","pool":"p","device":"a"})"),
              HasSubstr("no device of this driver"));
  EXPECT_THAT(ErrorOf("u", Allocated("a", "", "Not_A_Label")), HasSubstr("is not a DNS label"));
  EXPECT_THAT(*files_.ListDirectory("/cdi"), IsEmpty());
}

TEST_F(ClaimFilesTest, EachDeviceIsReturnedWithItsShare) {
  const auto prepared =
      Prepare("u", StrCat(Allocated("a", R"(,"shareID":"s1")"), ",",
                          Allocated("a", R"(,"shareID":"s2")"), ",", Allocated("b", "", "q/sub")));
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  ASSERT_EQ(prepared->size(), 3u);
  EXPECT_EQ((*prepared)[0].share_id, "s1");
  EXPECT_EQ((*prepared)[1].share_id, "s2");
  EXPECT_FALSE((*prepared)[2].share_id.has_value());
  EXPECT_THAT((*prepared)[0].cdi_device_ids, ElementsAre("d.example.com/claim=u-r"));
  EXPECT_THAT((*prepared)[1].cdi_device_ids, IsEmpty()) << "one id is enough for a request";
  EXPECT_THAT((*prepared)[2].cdi_device_ids, ElementsAre("d.example.com/claim=u-q"));
  EXPECT_THAT((*prepared)[2].request_names, ElementsAre("q/sub"));
}

TEST_F(ClaimFilesTest, AClaimWhoseRecordCannotBeReadIsKnownByItsUid) {
  ASSERT_TRUE(Prepare("u1", Allocated("a")).ok());
  EXPECT_THAT(Prepared(), ElementsAre("u1 ns/c"));
  const auto write = [&](const std::string& uid, const std::string& text) {
    ASSERT_TRUE(
        files_.WriteFile(StrCat("/cdi/d.example.com_claim_", uid, ".json"), text, 0644).ok());
  };
  // The spec of u1 with one text replaced.
  const std::string good = *files_.ReadFile("/cdi/d.example.com_claim_u1.json");
  const auto with = [&](std::string_view text, std::string_view replacement) {
    std::string changed = good;
    const std::size_t at = changed.find(text);
    EXPECT_NE(at, std::string::npos) << text << " in " << good;
    if (at != std::string::npos) changed.replace(at, text.size(), replacement);
    return changed;
  };
  write("u2", "{");
  write("u3", with("d.example.com/devices", "d.example.com/others"));
  write("u4", with("d.example.com/claim\": \"ns", "d.example.com/other\": \"ns"));
  write("u5", with("ns/c", "nothing"));
  write("u6", with("ns/c", "ns/c6"));
  write("u.7", with("ns/c", "ns/c7"));
  ASSERT_TRUE(files_.WriteFile("/cdi/other_claim_u8.json", "{}", 0644).ok());
  ASSERT_TRUE(files_.WriteFile("/cdi/d.example.com_claim_u9.txt", "{}", 0644).ok());
  EXPECT_THAT(Prepared(), ElementsAre("u1 ns/c", "u2 /", "u3 /", "u4 /", "u5 /", "u6 ns/c6"));
}

TEST_F(ClaimFilesTest, RecordsOfOlderDriversAreReadAndRemoved) {
  ASSERT_TRUE(files_.MakeDirectories("/home/claims", 0755).ok());
  ASSERT_TRUE(files_
                  .WriteFile("/home/claims/u1.json",
                             R"({"namespace":"ns","name":"old","devices":["a"]})", 0600)
                  .ok());
  ASSERT_TRUE(files_.WriteFile("/home/claims/u2.json", "{", 0600).ok());
  ASSERT_TRUE(files_.WriteFile("/home/claims/u3.tmp", "{}", 0600).ok());
  EXPECT_THAT(Prepared(), ElementsAre("u1 ns/old", "u2 /"));
  ASSERT_TRUE(claims_.Unprepare("u1").ok());
  EXPECT_THAT(Prepared(), ElementsAre("u2 /"));
}

TEST_F(ClaimFilesTest, DirectoriesOfRemovedDevicesGoUnlessAClaimHoldsThem) {
  EXPECT_TRUE(claims_.RemoveOldDevices(devices_).ok()) << "there are none";
  ASSERT_TRUE(Prepare("u1", Allocated("a")).ok());
  ASSERT_TRUE(Prepare("u2", Allocated("b")).ok());
  ASSERT_TRUE(claims_.Unprepare("u2").ok());
  EXPECT_THAT(DeviceDirectories(), ElementsAre("a", "b"));
  ASSERT_TRUE(claims_.RemoveOldDevices(devices_).ok());
  EXPECT_THAT(DeviceDirectories(), ElementsAre("a", "b")) << "both exist";
  ASSERT_TRUE(files_.WriteFile("/cdi/d.example.com_claim_u3.json", "{", 0644).ok());
  ASSERT_TRUE(claims_.RemoveOldDevices({}).ok());
  EXPECT_THAT(DeviceDirectories(), ElementsAre("a", "b")) << "u3 may hold any device";
  ASSERT_TRUE(claims_.Unprepare("u3").ok());
  ASSERT_TRUE(claims_.RemoveOldDevices({}).ok());
  EXPECT_THAT(DeviceDirectories(), ElementsAre("a"));
}

}  // namespace
}  // namespace drakkar::driver

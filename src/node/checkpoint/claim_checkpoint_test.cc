#include "node/checkpoint/claim_checkpoint.h"

#include <gtest/gtest.h>

#include "api/testing/vectors.h"
#include "base/testing/memory_file_system.h"
#include "base/testing/seeded_loop.h"
#include "node/checkpoint/checkpoint_file.h"
#include "node/checkpoint/checkpoint_slots.h"
#include "tests/support/vector_report.h"

namespace drakkar::node {
namespace {

using api::Value;

std::optional<std::vector<std::string>> Strings(Value json) {
  if (!json.has_value()) return std::nullopt;
  std::vector<std::string> list;
  for (const Value item : json.elements()) list.emplace_back(item.str());
  return list;
}

CheckpointState ReadState(Value json) {
  if (!json.has_value()) return std::nullopt;
  std::vector<CheckpointClaim> claims;
  for (const Value each : json.elements()) {
    CheckpointClaim claim{.uid = std::string(each["ClaimUID"].str()),
                          .name = std::string(each["ClaimName"].str()),
                          .namespace_name = std::string(each["Namespace"].str())};
    if (each["PodUIDs"].has_value()) {
      claim.pod_uids.emplace();
      for (const auto& [key, uid, nothing] : each["PodUIDs"].members())
        claim.pod_uids->emplace(uid);
    }
    if (each["DriverState"].has_value()) {
      claim.driver_state.emplace();
      for (const auto& [key, name, state] : each["DriverState"].members()) {
        CheckpointDriver driver;
        driver.skip_node_operations =
            Strings(state["skipNodeOperations"]).value_or(std::vector<std::string>());
        if (state["Devices"].has_value()) {
          driver.devices.emplace();
          for (const Value item : state["Devices"].elements()) {
            CheckpointDevice device{.pool_name = std::string(item["PoolName"].str()),
                                    .device_name = std::string(item["DeviceName"].str())};
            if (item["ShareID"].has_value()) device.share_id = std::string(item["ShareID"].str());
            device.request_names = Strings(item["RequestNames"]);
            device.cdi_device_ids = Strings(item["CDIDeviceIDs"]);
            driver.devices->push_back(std::move(device));
          }
        }
        (*claim.driver_state)[std::string(name)] = std::move(driver);
      }
    }
    claims.push_back(std::move(claim));
  }
  return claims;
}

TEST(ClaimCheckpointVectors, LoadAsKubernetesDoes) {
  const api::TreePtr vectors = api::LoadVectors("checkpoint/load.json");
  if (vectors == nullptr) GTEST_SKIP() << api::kNoVectors;
  testing::VectorReport report("checkpoint");
  const Value cases = vectors->root();
  ASSERT_GT(cases.size(), 30u);
  for (const Value each : cases.elements()) {
    testing::VectorReport::Case scope(report);
    SCOPED_TRACE(each["name"].str());
    SeededLoop loop;
    MemoryFileSystem files;
    auto work = MakeLoopWork(loop);
    CheckpointFile file(loop, files, *work, "/root");
    ASSERT_TRUE(files.MakeDirectories("/root", 0755).ok());
    if (each["exists"].boolean()) {
      ASSERT_TRUE(files.WriteFile(file.path(), std::string(each["content"].str()), 0600).ok());
    }
    const auto state = file.LoadOrCreate();
    const std::string expected_error(each["error"].str(each["dataError"].str()));
    if (!expected_error.empty()) {
      ASSERT_FALSE(state.ok());
      EXPECT_EQ(state.error().code, ErrorCode::kDataLoss);
      EXPECT_NE(state.error().message.find(expected_error), std::string::npos)
          << state.error().message << "\nexpected: " << expected_error;
      continue;
    }
    ASSERT_TRUE(state.ok()) << state.error().message;
    EXPECT_EQ(*state, ReadState(each["state"]));
    EXPECT_EQ(*files.ReadFile(file.path()), each["fileAfterLoad"].str());
  }
}

TEST(ClaimCheckpointVectors, StoreAsKubernetesDoes) {
  const api::TreePtr vectors = api::LoadVectors("checkpoint/store.json");
  if (vectors == nullptr) GTEST_SKIP() << api::kNoVectors;
  testing::VectorReport report("checkpoint");
  const Value cases = vectors->root();
  ASSERT_GE(cases.size(), 10u);
  for (const Value each : cases.elements()) {
    testing::VectorReport::Case scope(report);
    EXPECT_EQ(EncodeCheckpoint(ReadState(each["state"])), each["file"].str()) << each["name"].str();
  }
}

TEST(ClaimCheckpoint, HasTheChecksumKubernetesComputes) {
  EXPECT_NE(EncodeCheckpoint(std::nullopt).find("\"Checksum\":4010664294}"), std::string::npos);
}

TEST(CheckpointFile, SaysWhatToDoWithACorruptFile) {
  SeededLoop loop;
  MemoryFileSystem files;
  auto work = MakeLoopWork(loop);
  CheckpointFile file(loop, files, *work, "/root");
  ASSERT_TRUE(files.MakeDirectories("/root", 0755).ok());
  ASSERT_TRUE(
      files.WriteFile("/root/dra_manager_state", R"({"Data":"{}","Checksum":1})", 0600).ok());
  const auto state = file.LoadOrCreate();
  ASSERT_FALSE(state.ok());
  EXPECT_NE(state.error().message.find("move the file away"), std::string::npos);
  EXPECT_EQ(*files.ReadFile("/root/dra_manager_state"), R"({"Data":"{}","Checksum":1})");
}

TEST(CheckpointFile, ConcurrentStoresShareAWrite) {
  SeededLoop loop;
  MemoryFileSystem files;
  auto work = MakeLoopWork(loop);
  CheckpointFile file(loop, files, *work, "/root");
  ASSERT_TRUE(file.LoadOrCreate().ok());
  int writes = 0;
  file.SetSource([&] {
    ++writes;
    return CheckpointState();
  });
  int done = 0;
  for (int i = 0; i < 10; ++i)
    file.Store([&](Result<void> result) { done += result.ok() ? 1 : 0; });
  loop.RunUntilIdle();
  EXPECT_EQ(done, 10);
  EXPECT_EQ(writes, 2);
}

TEST(CheckpointFile, OldContentSurvivesEachFailingCallAndACrash) {
  for (std::size_t call = 0;; ++call) {
    SeededLoop loop;
    MemoryFileSystem files;
    auto work = MakeLoopWork(loop);
    CheckpointFile file(loop, files, *work, "/root");
    ASSERT_TRUE(file.LoadOrCreate().ok());
    file.SetSource([] { return CheckpointState(std::vector<CheckpointClaim>{{.uid = "u"}}); });
    const std::size_t before = files.calls();
    files.FailCall(call);
    std::optional<bool> ok;
    file.Store([&](Result<void> result) { ok = result.ok(); });
    loop.RunUntilIdle();
    ASSERT_TRUE(ok.has_value());
    if (files.calls() - before <= call) break;  // every call of a write has failed once
    files.Crash();
    CheckpointFile again(loop, files, *work, "/root");
    const auto state = again.LoadOrCreate();
    ASSERT_TRUE(state.ok()) << state.error().message;
    EXPECT_TRUE(!*ok || state->has_value()) << "an acknowledged write is lost, call " << call;
  }
}

// The side file.

constexpr char kSlots[] = "/root/dra_manager_state.intents";
constexpr char kState[] = "/root/dra_manager_state";

struct Stored {
  SeededLoop loop;
  MemoryFileSystem files;
  std::unique_ptr<BlockingWork> work = MakeLoopWork(loop);
  std::optional<CheckpointFile> file;
  std::string uid;
  bool side_file = true;

  // As a new process.
  CheckpointState Load() {
    file.emplace(loop, files, *work, "/root", side_file);
    auto state = file->LoadOrCreate();
    EXPECT_TRUE(state.ok()) << state.error().message;
    file->SetSource([this] { return CheckpointState(std::vector<CheckpointClaim>{{.uid = uid}}); });
    return state.ok() ? *state : CheckpointState();
  }
  bool Store(std::string value) {
    uid = std::move(value);
    bool ok = false;
    file->Store([&](Result<void> result) { ok = result.ok(); });
    loop.RunUntilIdle();
    return ok;
  }
  std::string Uid(const CheckpointState& state) { return state ? state->at(0).uid : "(none)"; }
};

TEST(CheckpointFile, StoredStateSurvivesAPowerLossBeforeTheCheckpointIsWritten) {
  Stored node;
  node.Load();
  for (const char* uid : {"claim-1", "claim-2", "claim-3"}) {
    ASSERT_TRUE(node.Store(uid));
    EXPECT_EQ(node.files.ReadFile(kState)->find(uid), std::string::npos);
    node.files.Crash();
    EXPECT_EQ(node.Uid(node.Load()), uid);
  }
  node.loop.Advance(CheckpointFile::kSettleAfter);
  EXPECT_NE(node.files.ReadFile(kState)->find("claim-3"), std::string::npos);
  node.files.Crash();
  EXPECT_EQ(node.Uid(node.Load()), "claim-3");
}

TEST(CheckpointFile, StoringWaitsForOneSync) {
  Stored node;
  node.Load();
  ASSERT_TRUE(node.Store("a"));
  const std::size_t before = node.files.calls();
  ASSERT_TRUE(node.Store("b"));
  EXPECT_EQ(node.files.calls() - before, 2u) << "the bytes and their sync";
}

TEST(CheckpointFile, ATornSlotLeavesThePreviousOneInEffect) {
  Stored node;
  node.Load();
  ASSERT_TRUE(node.Store("a"));
  ASSERT_TRUE(node.Store("b"));
  const std::string whole = *node.files.ReadFile(kSlots);
  const std::size_t b = whole.find("\\\"b");
  ASSERT_NE(b, std::string::npos);
  std::string torn = whole;
  torn[b] ^= 1;
  ASSERT_TRUE(node.files.WriteFile(kSlots, torn, 0600).ok());
  EXPECT_EQ(node.Uid(node.Load()), "a");
}

// The other slot is empty, because the checkpoint had been written.
TEST(CheckpointFile, TheAgentStartsAfterAPowerLossInTheMiddleOfAnyWrite) {
  Stored node;
  node.Load();
  node.uid = "settled";
  node.file->StoreEventually();
  node.loop.Advance(CheckpointFile::kSettleAfter);
  for (int crash = 0; crash < 4; ++crash) {
    SCOPED_TRACE(crash);
    ASSERT_TRUE(node.Store("torn"));
    std::string bytes = *node.files.ReadFile(kSlots);
    const std::size_t at = bytes.find("\\\"torn");
    ASSERT_NE(at, std::string::npos);
    bytes[at + 3] ^= 1;
    ASSERT_TRUE(node.files.WriteFile(kSlots, bytes, 0600).ok());
    EXPECT_EQ(node.Uid(node.Load()), "settled");
  }
}

TEST(CheckpointFile, ACorruptSideFileIsRefusedAndTheErrorSaysWhatToDo) {
  Stored node;
  node.Load();
  ASSERT_TRUE(node.Store("first"));
  ASSERT_TRUE(node.Store("second"));
  const std::string whole = *node.files.ReadFile(kSlots);
  std::string both = whole, head = whole;
  both[whole.find("first")] ^= 1;
  both[whole.find("second")] ^= 1;
  head[kCheckpointSlotBytes] ^= 1;
  for (const std::string& damaged :
       {both, head, whole.substr(0, kCheckpointSlotBytes), std::string("what?")}) {
    ASSERT_TRUE(node.files.WriteFile(kSlots, damaged, 0600).ok());
    CheckpointFile file(node.loop, node.files, *node.work, "/root");
    const auto state = file.LoadOrCreate();
    ASSERT_FALSE(state.ok());
    EXPECT_EQ(state.error().code, ErrorCode::kDataLoss);
    EXPECT_NE(state.error().message.find("cannot use /root/dra_manager_state.intents"),
              std::string::npos)
        << state.error().message;
    EXPECT_NE(state.error().message.find("move the file away"), std::string::npos);
    EXPECT_EQ(*node.files.ReadFile(kSlots), damaged) << "left as it is";
  }
  ASSERT_TRUE(node.files.Remove(kSlots).ok());
  EXPECT_EQ(node.Uid(node.Load()), "(none)") << "the checkpoint had not followed";
}

TEST(CheckpointFile, AFailedReadSaysWhatToDo) {
  for (std::size_t call = 0; call < 3; ++call) {
    Stored node;
    node.Load();
    CheckpointFile file(node.loop, node.files, *node.work, "/root");
    node.files.FailCall(call);
    const auto state = file.LoadOrCreate();
    ASSERT_FALSE(state.ok()) << call;
    if (call == 0) continue;  // creates the directory
    EXPECT_NE(state.error().message.find("move the file away"), std::string::npos)
        << state.error().message;
  }
}

TEST(CheckpointFile, ACheckpointWrittenByAKubeletInTheMeantimeWins) {
  Stored node;
  node.Load();
  ASSERT_TRUE(node.Store("a"));
  const CheckpointState theirs(std::vector<CheckpointClaim>{{.uid = "theirs"}});
  ASSERT_TRUE(node.files.WriteFile(kState, EncodeCheckpoint(theirs), 0600).ok());
  EXPECT_EQ(node.Uid(node.Load()), "theirs");
}

TEST(CheckpointFile, MovingTheCheckpointAwayDiscardsTheSideFileToo) {
  Stored node;
  node.Load();
  ASSERT_TRUE(node.Store("a"));
  ASSERT_TRUE(node.files.Remove(kState).ok());
  EXPECT_EQ(node.Uid(node.Load()), "(none)");
}

// A slot based on an earlier checkpoint with the same content must not be revived.
TEST(CheckpointFile, ACheckpointThatRevertsDoesNotReviveAClearedSlot) {
  Stored node;
  node.Load();
  node.uid = "settled";
  node.file->StoreEventually();
  node.loop.Advance(CheckpointFile::kSettleAfter);
  ASSERT_TRUE(node.Store("a"));
  node.uid = "settled";
  node.file->StoreEventually();
  node.loop.Advance(CheckpointFile::kSettleAfter);
  EXPECT_EQ(node.Uid(node.Load()), "settled");
}

TEST(CheckpointFile, StateTooLargeForASlotIsWrittenToTheCheckpoint) {
  Stored node;
  node.Load();
  const std::string large(kCheckpointSlotBytes, 'x');
  ASSERT_TRUE(node.Store(large));
  node.files.Crash();
  EXPECT_EQ(node.Uid(node.Load()), large);
  ASSERT_TRUE(node.Store("small"));
  node.files.Crash();
  EXPECT_EQ(node.Uid(node.Load()), "small");
}

TEST(CheckpointFile, IsDurableWithoutASideFileToo) {
  Stored node;
  node.side_file = false;
  node.Load();
  EXPECT_FALSE(node.files.Exists(kSlots));
  for (const char* uid : {"a", "b"}) {
    ASSERT_TRUE(node.Store(uid));
    node.files.Crash();
    EXPECT_EQ(node.Uid(node.Load()), uid);
  }
  EXPECT_FALSE(node.files.Exists(kSlots));
}

TEST(CheckpointFile, WorksWithoutASideFile) {
  Stored node;
  node.Load();
  ASSERT_TRUE(node.files.WriteFile(kSlots, "short", 0600).ok());
  ASSERT_TRUE(node.files.Remove(kSlots).ok());
  ASSERT_TRUE(node.Store("a"));
  node.files.Crash();
  EXPECT_EQ(node.Uid(node.Load()), "a");
}

}  // namespace
}  // namespace drakkar::node

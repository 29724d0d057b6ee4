// The static CPU manager policy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/json/reader.h"
#include "base/env/random.h"
#include "base/testing/memory_file_system.h"
#include "base/text/text.h"
#include "node/cpus/cpu_checkpoint.h"
#include "node/cpus/cpu_manager.h"

namespace drakkar::node {
namespace {

using ::testing::HasSubstr;

CpuSet Cpus(std::string_view list) {
  auto set = CpuSet::Parse(list);
  EXPECT_TRUE(set.ok()) << list;
  return *set;
}

// As Linux numbers them: the first threads of all cores, then the second.
CpuTopology Machine(int sockets, int cores, int threads) {
  CpuTopology topology;
  for (int thread = 0, cpu = 0; thread < threads; ++thread) {
    for (int core = 0; core < sockets * cores; ++core, ++cpu) {
      topology.cpus[cpu] = {.core = core, .socket = core / cores, .numa_node = core / cores};
    }
  }
  return topology;
}

std::string Take(const CpuTopology& topology, std::string_view available, int count) {
  const auto taken = TakeCpus(topology, Cpus(available), count);
  return taken.ok() ? taken->ToString() : taken.error().message;
}

TEST(CpuSet, ReadsAndWritesTheKernelsLists) {
  EXPECT_EQ(Cpus("0-2,7,5-6").ToString(), "0-2,5-7");
  EXPECT_EQ(Cpus("").ToString(), "");
  EXPECT_EQ(Cpus(" 3\n").ToString(), "3");
  for (const char* wrong : {"a", "1-", "-1", "3-1", "1,,2", "1-99999999", "0x1"}) {
    EXPECT_FALSE(CpuSet::Parse(wrong).ok()) << wrong;
  }
}

TEST(CpuTopology, IsReadFromTheKernel) {
  MemoryFileSystem files;
  const auto put = [&](const std::string& path, const std::string& text) {
    ASSERT_TRUE(files.MakeDirectories(DirectoryName("/sys/devices/system/" + path), 0755).ok());
    ASSERT_TRUE(files.WriteFile("/sys/devices/system/" + path, text, 0644).ok());
  };
  EXPECT_FALSE(ReadCpuTopology(files).ok());
  put("cpu/online", "0-2\n");
  for (const auto& [cpu, core, socket] : {std::tuple(0, 4, 0), {1, 4, 1}, {2, 4, 0}}) {
    put(StrCat("cpu/cpu", cpu, "/topology/core_id"), StrCat(core, "\n"));
    put(StrCat("cpu/cpu", cpu, "/topology/physical_package_id"), StrCat(socket, "\n"));
  }
  put("node/node1/cpulist", "1,9\n");
  put("node/node0/cpulist", "0,2\n");
  put("node/possible", "0-1\n");
  const auto topology = ReadCpuTopology(files);
  ASSERT_TRUE(topology.ok()) << topology.error().message;
  EXPECT_EQ(topology->cpus.at(0), (CpuTopology::Place{0, 0, 0}));
  EXPECT_EQ(topology->cpus.at(1), (CpuTopology::Place{1, 1, 1})) << "another core of that number";
  EXPECT_EQ(topology->cpus.at(2), (CpuTopology::Place{0, 0, 0}));
  EXPECT_EQ(topology->CpusPerCore(), 2);
  EXPECT_EQ(topology->WholeCores(Cpus("2")).ToString(), "0,2");
}

TEST(TakeCpus, TakesWholeSocketsThenWholeCoresThenFromWhereLeastIsFree) {
  const CpuTopology machine = Machine(2, 4, 2);  // core 0 is CPUs 0 and 8
  EXPECT_EQ(Take(machine, "0-15", 2), "0,8");
  EXPECT_EQ(Take(machine, "0-15", 8), "0-3,8-11") << "the first socket";
  EXPECT_EQ(Take(machine, "1-15", 8), "4-7,12-15") << "the only whole socket";
  EXPECT_EQ(Take(machine, "1-15", 2), "1,9") << "a whole core of the fuller socket";
  EXPECT_EQ(Take(machine, "1-15", 1), "8") << "the rest of a broken core";
  EXPECT_EQ(Take(machine, "1-15", 3), "1,8-9");
  EXPECT_EQ(Take(machine, "4-7", 2), "4-5") << "no whole core is left";
  EXPECT_EQ(Take(machine, "4-7", 5),
            "not enough cpus available to satisfy request: requested=5, available=4");
}

// Whatever is chosen is a subset of the right size; a core is broken only if it must be.
TEST(TakeCpus, NeverBreaksMoreCoresThanItMust) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SeededRandom random(seed);
    const int threads = 1 + static_cast<int>(random.Below(2));
    const CpuTopology machine = Machine(1 + static_cast<int>(random.Below(3)),
                                        1 + static_cast<int>(random.Below(5)), threads);
    CpuSet available;
    for (const int cpu : machine.All()) {
      if (random.Below(4) != 0) available.Add(cpu);
    }
    const int count =
        static_cast<int>(random.Below(static_cast<std::uint64_t>(available.size()) + 2));
    const auto taken = TakeCpus(machine, available, count);
    ASSERT_EQ(taken.ok(), count <= available.size()) << seed;
    if (!taken.ok()) continue;
    EXPECT_EQ(taken->size(), count) << seed;
    EXPECT_TRUE(available.Contains(*taken)) << seed;
    int broken = 0;  // whole free cores of which only a part is taken
    std::map<int, std::pair<int, int>> cores;
    for (const int cpu : available) {
      auto& [free, used] = cores[machine.cpus.at(cpu).core];
      ++free;
      used += taken->Contains(cpu) ? 1 : 0;
    }
    for (const auto& [core, counts] : cores) {
      if (counts.first == threads && counts.second > 0 && counts.second < threads) ++broken;
    }
    EXPECT_LE(broken, count % threads == 0 ? 0 : 1) << seed;
  }
}

api::TreePtr Pod(std::string_view uid, std::string_view containers, std::string_view init = "",
                 std::string_view qos = "Guaranteed", std::string_view spec = "") {
  auto tree = api::ParseJson(StrCat(R"({"metadata":{"uid":")", uid, R"("},"spec":{"containers":[)",
                                    containers, R"(],"initContainers":[)", init, "]", spec,
                                    R"(},"status":{"qosClass":")", qos, R"("}})"));
  EXPECT_TRUE(tree.ok());
  return *tree;
}
std::string Container(std::string_view name, std::string_view cpu, std::string_view more = "") {
  return StrCat(R"({"name":")", name, R"(","resources":{"requests":{"cpu":")", cpu, R"("}})", more,
                "}");
}

CpuManager Manager(CpuManager::Options options) {
  auto made = CpuManager::Make(std::move(options));
  EXPECT_TRUE(made.ok()) << made.error().message;
  return *std::move(made);
}

TEST(CpuManager, WholeCpusOfGuaranteedPodsAreTheirOwnAndTheRestIsShared) {
  CpuManager cpus = Manager({.topology = Machine(1, 8, 1), .reserved_count = 1});
  EXPECT_EQ(cpus.Allocatable().ToString(), "1-7");
  EXPECT_EQ(cpus.CpusOf("any", "c").ToString(), "0-7");
  const auto pod = Pod("g", Container("two", "2") + "," + Container("half", "500m"));
  EXPECT_FALSE(cpus.Admit(pod->root()));
  EXPECT_EQ(cpus.CpusOf("g", "two").ToString(), "1-2");
  EXPECT_EQ(cpus.CpusOf("g", "half").ToString(), "0,3-7");
  EXPECT_EQ(cpus.Exclusive("g", "half"), nullptr);
  EXPECT_FALSE(cpus.Admit(Pod("b", Container("c", "2"), "", "Burstable")->root()));
  EXPECT_FALSE(cpus.HasExclusive("b"));
  EXPECT_FALSE(cpus.Admit(Pod("whole", Container("c", "2"), "", "Guaranteed",
                              R"(,"resources":{"requests":{"cpu":"2"}})")
                              ->root()));
  EXPECT_FALSE(cpus.HasExclusive("whole"));
  EXPECT_FALSE(cpus.Admit(pod->root())) << "it keeps what it has";
  EXPECT_EQ(cpus.CpusOf("g", "two").ToString(), "1-2");
  EXPECT_TRUE(cpus.Release("g"));
  EXPECT_FALSE(cpus.Release("g"));
  EXPECT_EQ(cpus.CpusOf("any", "c").ToString(), "0-7");
}

TEST(CpuManager, ReservedCpusAreNeverGivenAwayAndAPodGetsAllOrNothing) {
  CpuManager cpus = Manager({.topology = Machine(1, 4, 1), .reserved = Cpus("3")});
  const auto refused =
      cpus.Admit(Pod("g", Container("a", "2") + "," + Container("b", "2"))->root());
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->reason, "UnexpectedAdmissionError");
  EXPECT_EQ(refused->message,
            "Allocate failed due to not enough cpus available to satisfy request: requested=2, "
            "available=1, which is unexpected");
  EXPECT_EQ(cpus.state().shared.ToString(), "0-3");
  EXPECT_FALSE(cpus.Admit(Pod("g", Container("a", "3"))->root()));
  EXPECT_EQ(cpus.CpusOf("g", "a").ToString(), "0-2");
  EXPECT_EQ(cpus.state().shared.ToString(), "3");
}

TEST(CpuManager, CpusOfInitContainersAreUsedAgainButNotThoseOfSidecars) {
  CpuManager cpus = Manager({.topology = Machine(1, 5, 1), .reserved = Cpus("0")});
  const auto pod =
      Pod("g", Container("a", "2") + "," + Container("b", "1"),
          Container("first", "3") + "," + Container("side", "1", R"(,"restartPolicy":"Always")"));
  EXPECT_FALSE(cpus.Admit(pod->root()));
  EXPECT_EQ(cpus.Exclusive("g", "first")->ToString(), "1-3");
  EXPECT_EQ(cpus.Exclusive("g", "side")->ToString(), "1");
  EXPECT_EQ(cpus.Exclusive("g", "a")->ToString(), "2-3");
  EXPECT_EQ(cpus.Exclusive("g", "b")->ToString(), "4");
  EXPECT_EQ(cpus.state().shared.ToString(), "0");
}

TEST(CpuManager, FullCoresOnlyRefusesPartsOfCores) {
  CpuManager cpus =
      Manager({.topology = Machine(1, 4, 2), .reserved = Cpus("0"), .full_cores_only = true});
  auto refused = cpus.Admit(Pod("g", Container("a", "3"))->root());
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->reason, "SMTAlignmentError");
  EXPECT_EQ(refused->message,
            "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2");
  refused = cpus.Admit(Pod("g", Container("a", "8"))->root());
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->message,
            "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 6, "
            "requested CPUs = 8, CPUs per core = 2");
  EXPECT_FALSE(cpus.Admit(Pod("g", Container("a", "6"))->root()));
  EXPECT_EQ(cpus.CpusOf("g", "a").ToString(), "1-3,5-7");
}

TEST(CpuManager, AStrictReservationIsSharedByNobody) {
  CpuManager cpus =
      Manager({.topology = Machine(1, 4, 1), .reserved = Cpus("0"), .strict_reservation = true});
  EXPECT_EQ(cpus.CpusOf("any", "c").ToString(), "1-3");
  EXPECT_TRUE(cpus.Restore({.shared = Cpus("1-3")}).ok());
  EXPECT_FALSE(cpus.Restore({.shared = Cpus("0-3")}).ok());
}

TEST(CpuManager, NeedsReservedCpusOfThisMachine) {
  EXPECT_THAT(CpuManager::Make({.topology = Machine(1, 2, 1)}).error().message,
              HasSubstr("needs reservedSystemCPUs"));
  EXPECT_THAT(
      CpuManager::Make({.topology = Machine(1, 2, 1), .reserved = Cpus("7")}).error().message,
      HasSubstr("reservedSystemCPUs 7 are not all among this machine's CPUs 0-1"));
  EXPECT_FALSE(CpuManager::Make({.topology = Machine(1, 2, 1), .reserved_count = 3}).ok());
}

TEST(CpuManager, ContinuesOnlyFromAStateThatFits) {
  CpuManager cpus = Manager({.topology = Machine(1, 4, 1), .reserved = Cpus("0")});
  const auto why = [&](CpuState state) {
    auto restored = cpus.Restore(std::move(state));
    return restored.ok() ? "(restored)" : restored.error().message;
  };
  EXPECT_EQ(why({}), "(restored)");
  EXPECT_THAT(why({.shared = Cpus("1-3")}), HasSubstr("reserved CPUs are 0 now"));
  EXPECT_THAT(why({.shared = Cpus("0-1")}),
              HasSubstr("this machine has the CPUs 0-3, and had 0-1"));
  EXPECT_THAT(why({.shared = Cpus("0-5")}), HasSubstr("and had 0-5"));
  EXPECT_THAT(why({.shared = Cpus("0-3"), .exclusive = {{"u", {{"c", Cpus("3")}}}}}),
              HasSubstr("container c of pod u owns the CPUs 3, which are also shared"));
  EXPECT_EQ(why({.shared = Cpus("0-2"), .exclusive = {{"u", {{"c", Cpus("3")}}}}}), "(restored)");
  EXPECT_EQ(cpus.CpusOf("u", "c").ToString(), "3");
}

// The naive model: one owner per CPU.
TEST(CpuManager, AgreesWithAModelThatGivesEachCpuOneOwner) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SeededRandom random(seed);
    const CpuTopology machine =
        Machine(1 + static_cast<int>(random.Below(2)), 2 + static_cast<int>(random.Below(4)),
                1 + static_cast<int>(random.Below(2)));
    CpuManager::Options options{.topology = machine, .reserved_count = 1};
    CpuManager cpus = Manager(options);
    const int total = machine.All().size();
    std::map<std::string, int> model;  // pod -> CPUs; a pod has one container
    for (int step = 0; step < 60; ++step) {
      const std::string uid = StrCat("p", random.Below(6));
      if (random.Below(3) == 0) {
        EXPECT_EQ(cpus.Release(uid), model.erase(uid) == 1) << seed;
      } else if (random.Below(6) == 0) {
        // A restart continues from the checkpoint.
        auto state = ReadCpuCheckpoint(WriteCpuCheckpoint(cpus.state()));
        ASSERT_TRUE(state.ok()) << seed;
        EXPECT_EQ(*state, cpus.state()) << seed;
        cpus = Manager(options);
        ASSERT_TRUE(cpus.Restore(*std::move(state)).ok()) << seed;
      } else {
        const int wanted = static_cast<int>(random.Below(5));
        int used = 1;  // reserved
        for (const auto& [other, count] : model) used += count;
        const bool fits = model.contains(uid) || used + wanted <= total;
        EXPECT_EQ(!cpus.Admit(Pod(uid, Container("c", std::to_string(wanted)))->root()), fits)
            << seed;
        if (fits && wanted > 0) model.emplace(uid, wanted);
      }
      CpuSet seen = cpus.state().shared;
      int counted = seen.size();
      for (const auto& [uid_of, count] : model) {
        const CpuSet* own = cpus.Exclusive(uid_of, "c");
        ASSERT_NE(own, nullptr) << seed;
        EXPECT_EQ(own->size(), count) << seed;
        seen.Add(*own);
        counted += own->size();
      }
      EXPECT_EQ(seen, machine.All()) << seed;
      EXPECT_EQ(counted, total) << seed << ": a CPU has two owners";
      EXPECT_EQ(cpus.state().exclusive.size(), model.size()) << seed;
      EXPECT_FALSE(cpus.state().shared.And(machine.All().Without(cpus.Allocatable())).empty())
          << seed;
    }
  }
}

// Both checksums as a kubelet computed them for this state.
TEST(CpuCheckpoint, IsAKubelets) {
  const CpuState state{.shared = Cpus("0-1"), .exclusive = {{"u1", {{"c", Cpus("0")}}}}};
  const std::string text = WriteCpuCheckpoint(state);
  EXPECT_THAT(
      text, HasSubstr(R"("policyName":"static","defaultCpuSet":"0-1","entries":{"u1":{"c":"0"}})"));
  EXPECT_THAT(text, HasSubstr(R"("dataChecksum":2932843162)"));
  EXPECT_EQ(*ReadCpuCheckpoint(text), state);
  EXPECT_EQ(ReadCpuCheckpoint("")->shared, CpuSet());
}

TEST(CpuCheckpoint, OlderKubeletsCheckTheOldPart) {
  const CpuState state{
      .shared = Cpus("0-1"),
      .exclusive = {{"u2", {{"b", Cpus("1")}, {"a", Cpus("2-3")}}}, {"u1", {{"c", Cpus("0")}}}}};
  EXPECT_THAT(WriteCpuCheckpoint(state), HasSubstr(R"("checksum":767520000)"));
  const std::string old =
      R"({"policyName":"static","defaultCpuSet":"0-1","entries":{"u1":{"c":"0"},"u2":{"a":"2-3","b":"1"}},"checksum":767520000})";
  EXPECT_EQ(*ReadCpuCheckpoint(old), state);
}

TEST(CpuCheckpoint, IsRejectedIfItIsCorruptOrOfAnotherPolicy) {
  std::string changed = WriteCpuCheckpoint({.shared = Cpus("0-1")});
  changed.replace(changed.find(R"(\"0-1\")"), 7, R"(\"0-2\")");
  EXPECT_THAT(ReadCpuCheckpoint(changed).error().message, HasSubstr("checksum"));
  EXPECT_FALSE(ReadCpuCheckpoint("[]").ok());
  EXPECT_FALSE(ReadCpuCheckpoint("{").ok());
  EXPECT_FALSE(ReadCpuCheckpoint(R"({"policyName":"other","defaultCpuSet":""})").ok());
  EXPECT_EQ(*ReadCpuCheckpoint(R"({"policyName":"none","defaultCpuSet":""})"), CpuState());
}

}  // namespace
}  // namespace drakkar::node

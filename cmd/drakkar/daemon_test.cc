#include "cmd/drakkar/daemon.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "cli/testing/fake_console.h"

namespace drakkar::cmd {
namespace {

// Records what is done to it; its start finishes when the test says so.
class FakePart final : public Part {
 public:
  FakePart(std::string name, std::vector<std::string>& log,
           std::function<void(std::function<void(Result<void>)>)> on_start)
      : name_(std::move(name)), log_(log), on_start_(std::move(on_start)) {}
  ~FakePart() override { log_.push_back(name_ + " gone"); }

  std::string_view name() const override { return name_; }
  bool is_vital() const override { return vital; }
  void Start(std::function<void(Result<void>)> done) override {
    log_.push_back(name_ + " starts");
    on_start_(std::move(done));
  }
  void Stop(std::function<void()> done) override {
    log_.push_back(name_ + " stops");
    if (on_stop) return on_stop(std::move(done));
    done();
  }

  bool vital = true;
  std::function<void(std::function<void()>)> on_stop;  // if empty, immediately

 private:
  const std::string name_;
  std::vector<std::string>& log_;
  const std::function<void(std::function<void(Result<void>)>)> on_start_;
};

class RunPartsTest : public ::testing::Test {
 protected:
  int Run(
      std::function<void(std::function<void(Result<void>)>)> start_of_second,
      std::function<void(FakePart&)> prepare_second = [](FakePart&) {}) {
    std::vector<std::unique_ptr<Part>> parts;
    parts.push_back(std::make_unique<FakePart>("first", log_, [](auto done) { done(Ok()); }));
    parts.push_back(std::make_unique<FakePart>("second", log_, std::move(start_of_second)));
    prepare_second(static_cast<FakePart&>(*parts.back()));
    parts.push_back(std::make_unique<FakePart>("third", log_, [](auto done) { done(Ok()); }));
    return RunParts(loop_, std::move(parts), console_, [this] {
      log_.push_back("ready");
      ::raise(SIGTERM);
    });
  }

  UvLoop loop_;
  cli::testing::FakeConsole console_;
  std::vector<std::string> log_;
};

TEST_F(RunPartsTest, StartsInOrderAndStopsInReverse) {
  EXPECT_EQ(Run([](auto done) { done(Ok()); }), cli::kExitOk);
  EXPECT_EQ(log_, (std::vector<std::string>{"first starts", "second starts", "third starts",
                                            "ready", "third stops", "second stops", "first stops",
                                            "first gone", "second gone", "third gone"}));
}

TEST_F(RunPartsTest, APartThatIsStillStartingIsStoppedBeforeItIsDestroyed) {
  EXPECT_EQ(Run([](auto) { ::raise(SIGTERM); }), cli::kExitOk)
      << "the part never reports that it has started";
  EXPECT_EQ(log_,
            (std::vector<std::string>{"first starts", "second starts", "second stops",
                                      "first stops", "first gone", "second gone", "third gone"}));
}

TEST_F(RunPartsTest, APartThatIsNotVitalFailsAlone) {
  EXPECT_EQ(Run(
                [](auto done) {
                  done(Error{ErrorCode::kDataLoss, "its checkpoint is corrupt"});
                },
                [](FakePart& second) { second.vital = false; }),
            cli::kExitOk);
  EXPECT_EQ(log_, (std::vector<std::string>{"first starts", "second starts", "second stops",
                                            "third starts", "ready", "third stops", "first stops",
                                            "first gone", "second gone", "third gone"}));
  EXPECT_NE(console_.err.find("second: its checkpoint is corrupt"), std::string::npos);
}

TEST_F(RunPartsTest, ShutdownWaitsForAPartThatFailedAlone) {
  TimerHandle timer;
  EXPECT_EQ(Run([](auto done) { done(Unavailable("no")); },
                [&](FakePart& second) {
                  second.vital = false;
                  second.on_stop = [&](std::function<void()> done) {
                    // The signal arrives first.
                    ::raise(SIGTERM);
                    timer = loop_.RunAfter(std::chrono::milliseconds(20), [this, done] {
                      log_.push_back("second has stopped");
                      done();
                    });
                  };
                }),
            cli::kExitOk);
  EXPECT_EQ(log_, (std::vector<std::string>{"first starts", "second starts", "second stops",
                                            "second has stopped", "first stops", "first gone",
                                            "second gone", "third gone"}));
}

TEST_F(RunPartsTest, AVitalPartThatFailsToStartStopsTheOthersAndReportsWhy) {
  EXPECT_EQ(Run([](auto done) { done(Unavailable("no disk")); }), cli::kExitFailure);
  EXPECT_EQ(log_,
            (std::vector<std::string>{"first starts", "second starts", "second stops",
                                      "first stops", "first gone", "second gone", "third gone"}));
  EXPECT_NE(console_.err.find("second: no disk"), std::string::npos) << console_.err;
}

}  // namespace
}  // namespace drakkar::cmd

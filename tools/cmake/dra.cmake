# The one way to add a module. Every module is a static library, a test binary beside it, and
# optionally a benchmark binary and fuzz targets.
#
#   dra_library(NAME api_json
#               SRCS reader.cc writer.cc
#               DEPS base                # other modules or imported targets, linked publicly
#               TESTS reader_test.cc     # one test binary, NAME_test
#               TEST_DEPS testing        # what only the tests need
#               BENCHES reader_bench.cc  # one benchmark binary, NAME_bench (Google Benchmark)
#               FUZZ reader_fuzz.cc      # one fuzz target per file, NAME_reader_fuzz; see dra_fuzz
#               FUZZ_DEPS testing)       # what only they need

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(GTest REQUIRED)

if(DRAKKAR_FUZZ)
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)  # clang requires the same threading flags for all users
endif()
add_custom_target(all_benches)
if(DRAKKAR_FUZZ)
  add_custom_target(all_fuzz)
endif()

# Precompiled third-party headers: reading them is half the compile time of a small translation
# unit. The compiler accepts them only if all flags match, so every target is built for threads;
# -Winvalid-pch makes a mismatch an error.
add_compile_options(-pthread)
set(DRAKKAR_PCH_HEADERS
  <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <cstdint> <cstdlib> <cstring> <deque> <functional> <map>
  <memory> <mutex> <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>
  <absl/functional/any_invocable.h>)
file(WRITE ${CMAKE_BINARY_DIR}/pch_anchor.cc "")
add_library(drakkar_pch OBJECT ${CMAKE_BINARY_DIR}/pch_anchor.cc)
target_precompile_headers(drakkar_pch PRIVATE ${DRAKKAR_PCH_HEADERS})
add_library(drakkar_test_pch OBJECT ${CMAKE_BINARY_DIR}/pch_anchor.cc)
target_precompile_headers(drakkar_test_pch PRIVATE ${DRAKKAR_PCH_HEADERS} <gtest/gtest.h> <gmock/gmock.h>)
target_link_libraries(drakkar_test_pch PRIVATE GTest::gtest GTest::gmock)

function(dra_library)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS;TESTS;TEST_DEPS;BENCHES;FUZZ;FUZZ_DEPS" ${ARGN})
  if(ARG_SRCS)
    add_library(${ARG_NAME} STATIC ${ARG_SRCS})
    target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS})
    target_precompile_headers(${ARG_NAME} REUSE_FROM drakkar_pch)
  else()
    add_library(${ARG_NAME} INTERFACE)
    target_link_libraries(${ARG_NAME} INTERFACE ${ARG_DEPS})
  endif()
  if(ARG_TESTS AND NOT DRAKKAR_FUZZ)
    dra_test(NAME ${ARG_NAME}_test SRCS ${ARG_TESTS} DEPS ${ARG_NAME} ${ARG_TEST_DEPS})
  endif()
  if(ARG_BENCHES AND NOT DRAKKAR_FUZZ)
    add_executable(${ARG_NAME}_bench EXCLUDE_FROM_ALL ${ARG_BENCHES})
    target_link_libraries(${ARG_NAME}_bench PRIVATE ${ARG_NAME} ${ARG_TEST_DEPS} benchmark_main benchmark)
    add_dependencies(all_benches ${ARG_NAME}_bench)
  endif()
  foreach(source ${ARG_FUZZ})
    get_filename_component(stem ${source} NAME_WE)
    dra_fuzz(NAME ${ARG_NAME}_${stem} SRCS ${source} DEPS ${ARG_NAME} ${ARG_FUZZ_DEPS})
  endforeach()
endfunction()

# A fuzz target with seeds in tests/corpus/NAME. With DRAKKAR_FUZZ it is a libFuzzer binary, for
# `./dev soak fuzz`. Otherwise it is part of tests/fuzz/fuzz_replay, and the test fuzz_replay_NAME
# runs its seeds and a few thousand mutations of them.
function(dra_fuzz)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS" ${ARGN})
  if(DRAKKAR_FUZZ)
    add_executable(${ARG_NAME} ${ARG_SRCS})
    target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS})
    target_link_options(${ARG_NAME} PRIVATE -fsanitize=fuzzer)
    add_dependencies(all_fuzz ${ARG_NAME})
  else()
    add_library(${ARG_NAME} OBJECT ${ARG_SRCS})
    target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS})
    target_compile_definitions(${ARG_NAME} PRIVATE LLVMFuzzerTestOneInput=${ARG_NAME})
    target_precompile_headers(${ARG_NAME} REUSE_FROM drakkar_pch)
    set_property(GLOBAL APPEND PROPERTY DRAKKAR_FUZZ_TARGETS ${ARG_NAME})
  endif()
endfunction()

# A separate test binary, for tests that do not belong to a single module. It runs from the source
# root, so that `../shared` and `examples/` resolve.
function(dra_test)
  cmake_parse_arguments(ARG "" "NAME;TIMEOUT" "SRCS;DEPS;LABELS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} GTest::gtest_main GTest::gmock)
  target_precompile_headers(${ARG_NAME} REUSE_FROM drakkar_test_pch)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${ARG_NAME} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
    ENVIRONMENT "GTEST_OUTPUT=json:${CMAKE_BINARY_DIR}/test-results/${ARG_NAME}.json;DRAKKAR_BINARY_DIR=${CMAKE_BINARY_DIR}")
endfunction()

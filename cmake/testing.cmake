find_package(GTest REQUIRED)

file(GLOB kit CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/kit/*.cpp)
add_library(forebay_kit STATIC ${kit})
target_link_libraries(forebay_kit PUBLIC forebay forebay_options GTest::gtest GTest::gtest_main fmt::fmt)
target_include_directories(forebay_kit PUBLIC ${PROJECT_SOURCE_DIR}/tests)
target_precompile_headers(forebay_kit PRIVATE <gtest/gtest.h> <algorithm> <functional> <string> <vector>
                           <fmt/core.h> ${PROJECT_SOURCE_DIR}/tests/kit/kit.h)
# Compiled as an executable is, or the precompiled header would not fit one.
set_target_properties(forebay_kit PROPERTIES POSITION_INDEPENDENT_CODE OFF)
target_compile_options(forebay_kit PRIVATE -fPIE -Og)

# forebay_test(<name> [CPU_ONLY] SOURCES ... [LIBRARIES ...] [LABELS ...] [ATEN]): a GoogleTest program with the precompiled
# header of forebay_kit (ATEN: with that of ATen), run as two tests: <name>, and <name>_gpu for the cases with "cuda" in
# their names, which ctest reports as skipped without a GPU. CPU_ONLY: there are none.
function(forebay_test name)
  cmake_parse_arguments(arg "CPU_ONLY;ATEN" "" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  if(NOT arg_SOURCES)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE forebay forebay_options forebay_kit ${arg_LIBRARIES})
  target_compile_options(${name} PRIVATE -Og)  # half the time to compile, and as fast where it counts: in the library
  if(arg_ATEN)
    forebay_uses_aten(${name})
  else()
    target_precompile_headers(${name} REUSE_FROM forebay_kit)
  endif()
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  add_test(NAME ${name} COMMAND ${name} --gtest_filter=-*cuda*:*Cuda* --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES LABELS "unit;${arg_LABELS}")
  if(NOT arg_CPU_ONLY)
    add_test(NAME ${name}_gpu COMMAND ${name} --gtest_filter=*cuda*:*Cuda*)
    set_tests_properties(${name}_gpu PROPERTIES LABELS "gpu;${arg_LABELS}" SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]"
                         FAIL_REGULAR_EXPRESSION "Running 0 tests" RUN_SERIAL ON)
  endif()
  install(TARGETS ${name} RUNTIME DESTINATION tests COMPONENT tests)
endfunction()

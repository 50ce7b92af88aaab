# How a folder becomes a library: fourpiles_library(base SOURCES … TESTS … LINKS …).
#
# A folder links only folders above it in DESIGN's list (tests/tidy_test.cc checks the includes).
# Its tests, foo_test.cc beside foo.cc, become one program NAME_test.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

option(FOURPILES_TESTS "Build the tests" ON)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

find_package(fmt REQUIRED)
find_package(tl-expected REQUIRED)
if(FOURPILES_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
endif()

add_library(fourpiles_options INTERFACE)
target_compile_options(fourpiles_options INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Werror -ffp-contract=off)
target_include_directories(fourpiles_options INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)

function(fourpiles_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;TESTS;LINKS;TEST_LINKS" ${ARGN})
  add_library(fourpiles_${name} STATIC ${ARG_SOURCES})
  add_library(fourpiles::${name} ALIAS fourpiles_${name})
  target_link_libraries(fourpiles_${name} PUBLIC ${ARG_LINKS} tl::expected
                        PRIVATE fourpiles_options fmt::fmt)
  if(FOURPILES_TESTS AND ARG_TESTS)
    add_executable(${name}_test ${ARG_TESTS})
    target_link_libraries(${name}_test PRIVATE fourpiles_${name} fourpiles_options fmt::fmt
                          ${ARG_TEST_LINKS} GTest::gtest_main)
    target_compile_definitions(${name}_test PRIVATE
      FOURPILES_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
    add_test(NAME ${name}_test COMMAND ${name}_test)
  endif()
endfunction()

# How a folder becomes a library: fourpiles_library(base SOURCES … TESTS … LINKS …).
#
# A folder links only folders above it in docs/ARCHITECTURE.md's list (tests/tidy_test.cc checks the
# includes). Its tests, foo_test.cc beside foo.cc, become one program NAME_test.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

option(FOURPILES_TESTS "Build the tests" ON)
option(FOURPILES_FUZZ "Build the fuzz targets with libFuzzer (clang); else they replay their corpus" OFF)
option(FOURPILES_BENCH "Build the benchmarks" OFF)

find_program(CCACHE ccache)
if(CCACHE)
  # A checkout in another folder is the same to the cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()

# All packages are found here, because an imported target is known only below the folder that found it.
set(FOURPILES_PACKAGES fmt tl-expected simdjson nlohmann_json ZLIB Threads)  # what an installed library links
foreach(package IN LISTS FOURPILES_PACKAGES ITEMS CLI11 hwy)
  find_package(${package} REQUIRED)
endforeach()
if(FOURPILES_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(FOURPILES_BENCH)
  find_package(benchmark REQUIRED)
endif()

add_library(fourpiles_options INTERFACE)
target_compile_options(fourpiles_options INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Werror -ffp-contract=off
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=  # a failed CHECK names the file of the project
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)  # false on std::string in g++ 12: GCC bug 105651
target_include_directories(fourpiles_options INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})

function(fourpiles_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;TESTS;LINKS;TEST_LINKS" ${ARGN})
  add_library(fourpiles_${name} STATIC ${ARG_SOURCES})
  add_library(fourpiles::${name} ALIAS fourpiles_${name})
  set_target_properties(fourpiles_${name} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY FOURPILES_LIBRARIES fourpiles_${name})
  target_link_libraries(fourpiles_${name} PUBLIC ${ARG_LINKS} tl::expected
                        PRIVATE $<BUILD_INTERFACE:fourpiles_options> fmt::fmt)
  if(FOURPILES_TESTS AND ARG_TESTS)
    fourpiles_test(${name}_test SOURCES ${ARG_TESTS} LINKS fourpiles_${name} ${ARG_TEST_LINKS})
  endif()
endfunction()

# A GoogleTest program; each of its tests is one of ctest's.
function(fourpiles_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} fourpiles_options fmt::fmt GTest::gtest_main)
  target_compile_options(${name} PRIVATE -O0)  # half the time to compile
  target_compile_definitions(${name} PRIVATE FOURPILES_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  gtest_discover_tests(${name} NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)
endfunction()

# One library per folder of src/. A library sees its own folder, those of its DEPENDS (and theirs), and include/linnet: other
# folders are not on its include path, so a forbidden include does not compile.
#
# linnet_library(cache SOURCES block_pool.cc TESTS block_pool_test.cc DEPENDS base [THIRD_PARTY ...] [TEST_DEPENDS ...])
#   target linnet_cache; tests in linnet_cache_test, found by CTest one by one.
# Designated initializers name what differs from the defaults; g++ would have every field named.
set(LINNET_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Werror -Wno-missing-field-initializers
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)  # g++ 12 sees overlaps in std::string that are none
if(LINNET_SANITIZE)
  # Beside sanitizers g++ takes much for uninitialized that is not.
  list(APPEND LINNET_WARNINGS $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()

function(linnet_stage target name path)
  # <build>/staging/<name>/<path> -> src/<path>
  set(stage ${CMAKE_BINARY_DIR}/staging/${name})
  get_filename_component(parent ${stage}/${path} DIRECTORY)
  file(MAKE_DIRECTORY ${parent})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${path} ${stage}/${path} SYMBOLIC)
  target_include_directories(${target} ${ARGN} ${stage})
endfunction()

function(linnet_library name)
  cmake_parse_arguments(ARG "" "FOLDER" "SOURCES;TESTS;DEPENDS;THIRD_PARTY;TEST_DEPENDS" ${ARGN})
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER ${name})
  endif()
  set(target linnet_${name})
  list(TRANSFORM ARG_DEPENDS PREPEND linnet_)
  list(TRANSFORM ARG_TEST_DEPENDS PREPEND linnet_)
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    target_compile_options(${target} PRIVATE ${LINNET_WARNINGS})
    linnet_stage(${target} ${name} ${ARG_FOLDER} PUBLIC)
    target_link_libraries(${target} PUBLIC linnet_public ${ARG_DEPENDS} ${ARG_THIRD_PARTY})
  else()
    add_library(${target} INTERFACE)
    linnet_stage(${target} ${name} ${ARG_FOLDER} INTERFACE)
    target_link_libraries(${target} INTERFACE linnet_public ${ARG_DEPENDS} ${ARG_THIRD_PARTY})
  endif()
  if(ARG_TESTS AND BUILD_TESTING)
    linnet_test(${target}_test SOURCES ${ARG_TESTS} LIBRARIES ${target} ${ARG_TEST_DEPENDS})
  endif()
endfunction()

function(linnet_test target)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${target} ${ARG_SOURCES})
  target_compile_options(${target} PRIVATE ${LINNET_WARNINGS})
  target_compile_definitions(${target} PRIVATE LINNET_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE ${ARG_LIBRARIES} GTest::gtest GTest::gtest_main)
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 600)
endfunction()

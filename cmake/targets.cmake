# What every target of ours is built with, and the folder that `#include <forebay/...>` is found in.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

# The source folders are the include folders: <forebay/array/array.h> is array/array.h. <forebay/pipeline.h> and its
# kin are one-line headers for users.
set(FOREBAY_INCLUDE ${PROJECT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${FOREBAY_INCLUDE}/forebay)
foreach(layer IN ITEMS array ops pipeline integrations)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${layer} ${FOREBAY_INCLUDE}/forebay/${layer} SYMBOLIC)
endforeach()
foreach(pair IN ITEMS "array=array/array.h" "pipeline=pipeline/pipeline.h" "dlpack=integrations/dlpack/dlpack.h"
                      "torch=integrations/torch/torch.h" "torch_data=integrations/torch/data.h"
                      "distributed=integrations/distributed/distributed.h")
  string(REGEX MATCH "(.*)=(.*)" matched ${pair})
  file(CONFIGURE OUTPUT ${FOREBAY_INCLUDE}/forebay/${CMAKE_MATCH_1}.h
       CONTENT "#pragma once\n#include <forebay/${CMAKE_MATCH_2}>\n")
endforeach()

add_library(forebay_options INTERFACE)
target_include_directories(forebay_options INTERFACE $<BUILD_INTERFACE:${FOREBAY_INCLUDE}>)
# Contracted multiply-adds would give the CPU other bits than the GPU.
target_compile_options(forebay_options INTERFACE -Wall -Wextra -Wshadow -ffp-contract=off)
if(FOREBAY_SANITIZE)
  # In code that it instruments GCC 12 sees writes past the ends of strings that are none.
  target_compile_options(forebay_options INTERFACE -fsanitize=${FOREBAY_SANITIZE} -fno-omit-frame-pointer -g1
                         -Wno-array-bounds)
  target_link_options(forebay_options INTERFACE -fsanitize=${FOREBAY_SANITIZE})
endif()

# What nearly every source file includes, compiled once for a target: most files take half the time. A file still includes
# what it uses; the test headers_alone compiles without.
set(FOREBAY_PRECOMPILED <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <mutex> <optional> <span> <string>
                        <string_view> <utility> <vector> <fmt/core.h>)

# One object library a layer, so that a layer cannot see those to its right; together they are libforebay.so.
function(forebay_layer name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES;PRECOMPILED" ${ARGN})
  add_library(forebay_${name} OBJECT ${arg_SOURCES})
  if(arg_PRECOMPILED)
    target_precompile_headers(forebay_${name} PRIVATE ${FOREBAY_PRECOMPILED} ${arg_PRECOMPILED})
  endif()
  target_link_libraries(forebay_${name} PRIVATE forebay_options fmt::fmt ${arg_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY FOREBAY_LAYERS forebay_${name})
  set_property(GLOBAL APPEND PROPERTY FOREBAY_LIBRARIES ${arg_LIBRARIES})
endfunction()

# The precompiled <ATen/ATen.h> of integrations/torch, which is compiled as for a shared library, for a target.
function(forebay_uses_aten target)
  target_precompile_headers(${target} REUSE_FROM forebay_aten)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
endfunction()

# embed_text(<target> <name> <file>...): the text of files as `extern const char* const <name>`.
function(embed_text target name)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE source)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded/${name}.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DINPUT=${source}" -DOUTPUT=${output} -DNAME=${name}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()

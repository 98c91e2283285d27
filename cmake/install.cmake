# What `cmake --install` lays out, by component:
#   runtime   libraries, the command, headers, package files: all that a user of the library needs
#   bundle    the libraries of others that ours need, but for the system's, CUDA's and LibTorch's
#   tests, examples, bench   the programs with their files, in folders of these names
# Everything finds everything by paths relative to itself, so the whole tree can be moved to another machine.
include(CMakePackageConfigHelpers)

install(TARGETS forebay EXPORT forebayTargets LIBRARY DESTINATION lib COMPONENT runtime)
install(TARGETS forebay_cli RUNTIME DESTINATION bin COMPONENT runtime)
foreach(layer IN ITEMS array ops pipeline integrations/dlpack integrations/torch integrations/distributed)
  if(layer MATCHES "torch|distributed" AND NOT FOREBAY_WITH_TORCH)
    continue()
  endif()
  install(DIRECTORY ${layer}/ DESTINATION include/forebay/${layer} COMPONENT runtime FILES_MATCHING PATTERN "*.h"
          PATTERN cuda EXCLUDE PATTERN absent EXCLUDE PATTERN config EXCLUDE PATTERN cli EXCLUDE
          PATTERN require.h EXCLUDE PATTERN gloo.h EXCLUDE PATTERN "*_test.h" EXCLUDE)
endforeach()
set(umbrellas array.h ops.h pipeline.h dlpack.h builder_methods.inc)
if(FOREBAY_WITH_TORCH)
  list(APPEND umbrellas torch.h torch_data.h distributed.h)
endif()
list(TRANSFORM umbrellas PREPEND ${FOREBAY_INCLUDE}/forebay/)
install(FILES ${umbrellas} DESTINATION include/forebay COMPONENT runtime)

set(package lib/cmake/forebay)
set(FOREBAY_LIBTORCH_FOLDER "")
if(FOREBAY_WITH_TORCH)
  cmake_path(GET LibTorch_INCLUDE_DIR PARENT_PATH FOREBAY_LIBTORCH_FOLDER)
  install(TARGETS forebay_torch forebay_distributed EXPORT forebayTorchTargets LIBRARY DESTINATION lib COMPONENT runtime)
  install(EXPORT forebayTorchTargets NAMESPACE forebay:: DESTINATION ${package} COMPONENT runtime)
  install(FILES cmake/FindLibTorch.cmake DESTINATION ${package} COMPONENT runtime)
endif()
install(EXPORT forebayTargets NAMESPACE forebay:: DESTINATION ${package} COMPONENT runtime)
configure_package_config_file(cmake/forebayConfig.cmake.in forebayConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(forebayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/forebayConfig.cmake ${PROJECT_BINARY_DIR}/forebayConfigVersion.cmake
        DESTINATION ${package} COMPONENT runtime)

# Every program and library of the build: their run paths, and what to look at for the bundle.
function(forebay_targets folder result)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(inner IN LISTS folders)
    forebay_targets(${inner} more)
    list(APPEND targets ${more})
  endforeach()
  set(${result} ${targets} PARENT_SCOPE)
endfunction()
forebay_targets(${PROJECT_SOURCE_DIR} targets)
set(libraries "")
set(programs "")
foreach(target IN LISTS targets)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL SHARED_LIBRARY)
    list(APPEND libraries $<TARGET_FILE:${target}>)
    set_property(TARGET ${target} PROPERTY INSTALL_RPATH $ORIGIN)
  elseif(type STREQUAL EXECUTABLE)
    list(APPEND programs $<TARGET_FILE:${target}>)
    set_property(TARGET ${target} PROPERTY INSTALL_RPATH $ORIGIN/../lib $ORIGIN/../../lib)
  else()
    continue()
  endif()
  # Behind those: where CUDA and LibTorch are on this machine.
  set_property(TARGET ${target} PROPERTY INSTALL_RPATH_USE_LINK_PATH ON)
endforeach()
install(CODE "
  set(libraries \"${libraries}\")
  set(programs \"${programs}\")
  foreach(file IN LISTS libraries programs)
    if(NOT EXISTS \${file})  # of the other components, some may not have been built
      list(REMOVE_ITEM libraries \${file})
      list(REMOVE_ITEM programs \${file})
    endif()
  endforeach()
  file(GET_RUNTIME_DEPENDENCIES LIBRARIES \${libraries} EXECUTABLES \${programs}
    RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
    PRE_EXCLUDE_REGEXES ^ld- [=[^lib(c|m|mvec|dl|rt|pthread|stdc[+][+]|gcc_s|gomp|[a-z]*san)[.]]=]
                        [=[^lib(torch|c10|cu|nv)]=]
    POST_EXCLUDE_REGEXES [=[/libforebay]=])
  if(missing)
    message(FATAL_ERROR \"forebay: not found, and so not in the bundle: \${missing}\")
  endif()
  file(INSTALL \${found} DESTINATION \${CMAKE_INSTALL_PREFIX}/lib TYPE SHARED_LIBRARY FOLLOW_SYMLINK_CHAIN)
" COMPONENT bundle)

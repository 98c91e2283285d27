# LibTorch as a folder with include and lib: a wheel's torch folder or an unpacked LibTorch.
# LibTorch's own package files want nvcc and link the CUDA driver; a program linked like that does not start on a
# machine without a driver. Set LibTorch_ROOT, or CMAKE_PREFIX_PATH, to the folder.
find_path(LibTorch_INCLUDE_DIR torch/csrc/api/include/torch/torch.h)
foreach(part IN ITEMS torch torch_cpu c10)
  find_library(LibTorch_${part}_LIBRARY ${part})
endforeach()
foreach(part IN ITEMS torch_cuda c10_cuda)
  find_library(LibTorch_${part}_LIBRARY ${part})
  mark_as_advanced(LibTorch_${part}_LIBRARY)
endforeach()
if(LibTorch_INCLUDE_DIR AND EXISTS ${LibTorch_INCLUDE_DIR}/torch/headeronly/version.h)
  file(STRINGS ${LibTorch_INCLUDE_DIR}/torch/headeronly/version.h lines REGEX "TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]")
  list(TRANSFORM lines REPLACE ".* ([0-9]+)$" "\\1")
  string(REPLACE ";" "." LibTorch_VERSION "${lines}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_torch_LIBRARY LibTorch_torch_cpu_LIBRARY LibTorch_c10_LIBRARY LibTorch_INCLUDE_DIR
  VERSION_VAR LibTorch_VERSION)
if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE
    ${LibTorch_INCLUDE_DIR} ${LibTorch_INCLUDE_DIR}/torch/csrc/api/include)
  target_link_libraries(LibTorch::LibTorch INTERFACE
    ${LibTorch_torch_cpu_LIBRARY} ${LibTorch_c10_LIBRARY})
  if(LibTorch_torch_cuda_LIBRARY)
    # Nothing refers to libtorch_cuda by symbol; without it LibTorch has no CUDA.
    target_link_libraries(LibTorch::LibTorch INTERFACE ${LibTorch_c10_cuda_LIBRARY}
      -Wl,--push-state,--no-as-needed ${LibTorch_torch_LIBRARY} ${LibTorch_torch_cuda_LIBRARY} -Wl,--pop-state)
  endif()
endif()

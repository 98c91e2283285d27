# OpenBLAS with prefixed symbols (scipy_cblas_sgemm): they cannot collide with those that LibTorch exports.
find_path(OpenBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES include NO_DEFAULT_PATH PATHS ${CMAKE_PREFIX_PATH})
find_library(OpenBLAS_LIBRARY scipy_openblas PATH_SUFFIXES lib)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLAS REQUIRED_VARS OpenBLAS_LIBRARY OpenBLAS_INCLUDE_DIR)
if(OpenBLAS_FOUND AND NOT TARGET OpenBLAS::OpenBLAS)
  add_library(OpenBLAS::OpenBLAS UNKNOWN IMPORTED)
  set_target_properties(OpenBLAS::OpenBLAS PROPERTIES IMPORTED_LOCATION ${OpenBLAS_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${OpenBLAS_INCLUDE_DIR})
endif()

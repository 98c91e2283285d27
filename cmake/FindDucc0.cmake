# The FFT part of ducc0, built by setup.sh as a static library with hidden symbols.
find_path(Ducc0_INCLUDE_DIR ducc0/fft/fft.h)
find_library(Ducc0_LIBRARY ducc0)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Ducc0 REQUIRED_VARS Ducc0_LIBRARY Ducc0_INCLUDE_DIR)
if(Ducc0_FOUND AND NOT TARGET Ducc0::Ducc0)
  add_library(Ducc0::Ducc0 STATIC IMPORTED)
  set_target_properties(Ducc0::Ducc0 PROPERTIES IMPORTED_LOCATION ${Ducc0_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${Ducc0_INCLUDE_DIR}
                        INTERFACE_COMPILE_DEFINITIONS DUCC0_NO_LOWLEVEL_THREADING)
endif()

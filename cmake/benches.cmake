# forebay_bench(<name> SOURCES ... [LIBRARIES ...]): a program that measures, built and installed (in bench/) with
# FOREBAY_BENCH only, or when its target is asked for.
function(forebay_bench name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE forebay forebay_options fmt::fmt ${arg_LIBRARIES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/bench)
  if(FOREBAY_BENCH)
    install(TARGETS ${name} RUNTIME DESTINATION bench COMPONENT bench)
  else()
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

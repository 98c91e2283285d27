# forebay_bench(<name> SOURCES ... [LIBRARIES ...]): a program that measures. It lies in bench/ of an installed tree.
function(forebay_bench name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE forebay forebay_options fmt::fmt ${arg_LIBRARIES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/bench)
  install(TARGETS ${name} RUNTIME DESTINATION bench COMPONENT bench)
endfunction()

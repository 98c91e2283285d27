# The layering check must fail on a tree that breaks each rule: a check that cannot fail proves nothing.
foreach(case IN ITEMS "array/bad.h=<forebay/ops/op.h>" "ops/bad.cpp=<forebay/pipeline.h>" "pipeline/bad.cpp=<forebay/torch.h>"
                      "array/bad.h=<tbb/parallel_for.h>" "ops/bad/bad.cu=<cuda_fp16.h>"
                      "integrations/bad.cpp=<forebay/pipeline/cli/args.h>")
  string(REGEX MATCH "(.*)=(.*)" matched "${case}")
  set(file ${CMAKE_MATCH_1})
  set(include ${CMAKE_MATCH_2})
  file(REMOVE_RECURSE ${SCRATCH})
  file(MAKE_DIRECTORY ${SCRATCH})
  foreach(layer IN ITEMS array ops pipeline integrations)
    file(COPY ${ROOT}/${layer} DESTINATION ${SCRATCH})
  endforeach()
  file(WRITE ${SCRATCH}/${file} "#include ${include}\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${SCRATCH} -P ${LAYERING} RESULT_VARIABLE result ERROR_VARIABLE error)
  if(result EQUAL 0 OR NOT error MATCHES "bad")
    message(FATAL_ERROR "layering.cmake accepted ${include} in ${file}: ${error}")
  endif()
endforeach()
file(REMOVE_RECURSE ${SCRATCH})

# Installs BUILD into SCRATCH, builds the project beside this file against that and runs its programs.
file(REMOVE_RECURSE ${SCRATCH})
set(environment ${CMAKE_COMMAND} -E env --unset=LD_LIBRARY_PATH)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}: ${result}\n${output}")
  endif()
endfunction()

foreach(component IN ITEMS runtime bundle)
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/first --component ${component})
endforeach()
file(RENAME ${SCRATCH}/first ${SCRATCH}/prefix)  # what is installed can be moved

# Without LibTorch, which must not even be looked for.
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${SCRATCH}/plain -G ${GENERATOR} -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS} -Dforebay_ROOT=${SCRATCH}/prefix
    -DCMAKE_DISABLE_FIND_PACKAGE_LibTorch=ON)
run(${CMAKE_COMMAND} --build ${SCRATCH}/plain)
run(${environment} ${SCRATCH}/plain/plain)
if(TORCH)
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${SCRATCH}/torch -G ${GENERATOR} -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}
      -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS} -Dforebay_ROOT=${SCRATCH}/prefix -DWITH_TORCH=ON)
  run(${CMAKE_COMMAND} --build ${SCRATCH}/torch --target train)
  run(${environment} ${SCRATCH}/torch/train)
endif()
